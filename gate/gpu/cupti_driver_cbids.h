// Callback ids of the driver's calls, as CUPTI's driver callbacks and DRIVER activity records carry them: X(exported
// name, id). A name carries its version, and _ptsz or _ptds where null names the calling thread's own stream. Here are the
// calls that a recorder must know, and those that the virtual GPU has. Compared with the toolkit's header at compile time
// (abi_check.cpp).
#pragma once

#include <cstdint>

// clang-format off
#define KGATE_CUPTI_DRIVER_CBIDS(X) \
  X(cuLaunchKernel, 307) X(cuLaunchKernel_ptsz, 442) X(cuLaunchKernelEx, 652) X(cuLaunchKernelEx_ptsz, 653) \
  X(cuLaunchCooperativeKernel, 477) X(cuLaunchCooperativeKernel_ptsz, 478) \
  X(cuLaunchCooperativeKernelMultiDevice, 480) X(cuLaunchHostFunc, 527) X(cuLaunchHostFunc_ptsz, 528) \
  X(cuStreamAddCallback, 346) X(cuStreamAddCallback_ptsz, 437) X(cuMemAlloc_v2, 243) X(cuMemAllocPitch_v2, 244) \
  X(cuMemAllocAsync, 598) X(cuMemAllocAsync_ptsz, 599) X(cuMemAllocFromPoolAsync, 611) \
  X(cuMemAllocFromPoolAsync_ptsz, 612) X(cuMemAllocManaged, 371) X(cuMemFree_v2, 245) X(cuMemFreeAsync, 600) \
  X(cuMemFreeAsync_ptsz, 601) X(cuMemAllocHost_v2, 294) X(cuMemHostAlloc, 39) X(cuMemFreeHost, 38) \
  X(cuMemHostRegister_v2, 379) X(cuMemHostUnregister, 302) X(cuMemHostGetDevicePointer_v2, 247) \
  X(cuMemAddressReserve, 547) X(cuMemAddressFree, 548) X(cuMemCreate, 549) X(cuMemRelease, 550) X(cuMemMap, 551) \
  X(cuMemUnmap, 552) X(cuMemSetAccess, 553) X(cuMemMapArrayAsync, 584) X(cuMemMapArrayAsync_ptsz, 585) \
  X(cuMemcpyHtoD_v2, 276) X(cuMemcpyHtoD_v2_ptds, 397) X(cuMemcpyDtoH_v2, 278) X(cuMemcpyDtoH_v2_ptds, 398) \
  X(cuMemcpyDtoD_v2, 280) X(cuMemcpyDtoD_v2_ptds, 399) X(cuMemcpy, 305) X(cuMemcpy_ptds, 408) \
  X(cuMemcpyHtoDAsync_v2, 277) X(cuMemcpyHtoDAsync_v2_ptsz, 421) X(cuMemcpyDtoHAsync_v2, 279) \
  X(cuMemcpyDtoHAsync_v2_ptsz, 422) X(cuMemcpyDtoDAsync_v2, 281) X(cuMemcpyDtoDAsync_v2_ptsz, 423) \
  X(cuMemcpyAsync, 306) X(cuMemcpyAsync_ptsz, 418) X(cuMemcpyPeer, 318) X(cuMemcpyPeer_ptds, 409) \
  X(cuMemcpyPeerAsync, 319) X(cuMemcpyPeerAsync_ptsz, 426) X(cuMemcpy2D_v2, 287) X(cuMemcpy2D_v2_ptds, 405) \
  X(cuMemcpy2DUnaligned_v2, 288) X(cuMemcpy2DUnaligned_v2_ptds, 406) X(cuMemcpy2DAsync_v2, 289) \
  X(cuMemcpy2DAsync_v2_ptsz, 424) X(cuMemcpy3D_v2, 290) X(cuMemcpy3D_v2_ptds, 407) X(cuMemcpy3DAsync_v2, 291) \
  X(cuMemcpy3DAsync_v2_ptsz, 425) X(cuMemcpy3DPeer, 320) X(cuMemcpy3DPeer_ptds, 410) X(cuMemcpy3DPeerAsync, 321) \
  X(cuMemcpy3DPeerAsync_ptsz, 427) X(cuMemcpyBatchAsync, 776) X(cuMemcpyBatchAsync_ptsz, 777) \
  X(cuMemcpyBatchAsync_v2, 796) X(cuMemcpyBatchAsync_v2_ptsz, 797) X(cuMemcpy3DBatchAsync, 778) \
  X(cuMemcpy3DBatchAsync_ptsz, 779) X(cuMemcpy3DBatchAsync_v2, 798) X(cuMemcpy3DBatchAsync_v2_ptsz, 799) \
  X(cuMemcpyHtoA_v2, 292) X(cuMemcpyHtoA_v2_ptds, 402) X(cuMemcpyAtoH_v2, 282) X(cuMemcpyAtoH_v2_ptds, 403) \
  X(cuMemcpyDtoA_v2, 285) X(cuMemcpyDtoA_v2_ptds, 400) X(cuMemcpyAtoD_v2, 284) X(cuMemcpyAtoD_v2_ptds, 401) \
  X(cuMemcpyAtoA_v2, 286) X(cuMemcpyAtoA_v2_ptds, 404) X(cuMemcpyHtoAAsync_v2, 293) \
  X(cuMemcpyHtoAAsync_v2_ptsz, 419) X(cuMemcpyAtoHAsync_v2, 283) X(cuMemcpyAtoHAsync_v2_ptsz, 420) \
  X(cuMemsetD8_v2, 249) X(cuMemsetD8_v2_ptds, 411) X(cuMemsetD16_v2, 250) X(cuMemsetD16_v2_ptds, 412) \
  X(cuMemsetD32_v2, 251) X(cuMemsetD32_v2_ptds, 413) X(cuMemsetD2D8_v2, 252) X(cuMemsetD2D8_v2_ptds, 414) \
  X(cuMemsetD2D16_v2, 253) X(cuMemsetD2D16_v2_ptds, 415) X(cuMemsetD2D32_v2, 254) X(cuMemsetD2D32_v2_ptds, 416) \
  X(cuMemsetD8Async, 216) X(cuMemsetD8Async_ptsz, 428) X(cuMemsetD16Async, 218) X(cuMemsetD16Async_ptsz, 429) \
  X(cuMemsetD32Async, 220) X(cuMemsetD32Async_ptsz, 430) X(cuMemsetD2D8Async, 222) X(cuMemsetD2D8Async_ptsz, 431) \
  X(cuMemsetD2D16Async, 224) X(cuMemsetD2D16Async_ptsz, 432) X(cuMemsetD2D32Async, 226) \
  X(cuMemsetD2D32Async_ptsz, 433) X(cuMemPrefetchAsync, 467) X(cuMemPrefetchAsync_ptsz, 468) \
  X(cuMemPrefetchAsync_v2, 716) X(cuMemPrefetchAsync_v2_ptsz, 717) X(cuMemAdvise, 457) X(cuMemAdvise_v2, 715) \
  X(cuStreamCreate, 124) X(cuStreamCreateWithPriority, 367) X(cuStreamDestroy_v2, 326) X(cuStreamSynchronize, 126) \
  X(cuStreamSynchronize_ptsz, 440) X(cuStreamQuery, 125) X(cuStreamQuery_ptsz, 439) X(cuStreamWaitEvent, 295) \
  X(cuStreamWaitEvent_ptsz, 436) X(cuStreamBeginCapture, 495) X(cuStreamBeginCapture_ptsz, 496) \
  X(cuStreamBeginCapture_v2, 539) X(cuStreamBeginCapture_v2_ptsz, 540) X(cuStreamEndCapture, 497) \
  X(cuStreamEndCapture_ptsz, 498) X(cuStreamBeginCaptureToGraph, 720) X(cuStreamBeginCaptureToGraph_ptsz, 721) \
  X(cuStreamUpdateCaptureDependencies, 631) X(cuStreamUpdateCaptureDependencies_ptsz, 632) \
  X(cuStreamUpdateCaptureDependencies_v2, 731) X(cuStreamUpdateCaptureDependencies_v2_ptsz, 732) \
  X(cuStreamAttachMemAsync, 377) X(cuStreamAttachMemAsync_ptsz, 438) X(cuStreamCopyAttributes, 572) \
  X(cuStreamCopyAttributes_ptsz, 573) X(cuStreamSetAttribute, 576) X(cuStreamSetAttribute_ptsz, 577) \
  X(cuStreamWaitValue32, 458) X(cuStreamWaitValue32_ptsz, 459) X(cuStreamWaitValue64, 473) \
  X(cuStreamWaitValue64_ptsz, 474) X(cuStreamWriteValue32, 460) X(cuStreamWriteValue32_ptsz, 461) \
  X(cuStreamWriteValue64, 475) X(cuStreamWriteValue64_ptsz, 476) X(cuStreamBatchMemOp, 462) \
  X(cuStreamBatchMemOp_ptsz, 463) X(cuStreamWaitValue32_v2, 659) X(cuStreamWaitValue32_v2_ptsz, 660) \
  X(cuStreamWaitValue64_v2, 661) X(cuStreamWaitValue64_v2_ptsz, 662) X(cuStreamWriteValue32_v2, 663) \
  X(cuStreamWriteValue32_v2_ptsz, 664) X(cuStreamWriteValue64_v2, 665) X(cuStreamWriteValue64_v2_ptsz, 666) \
  X(cuStreamBatchMemOp_v2, 667) X(cuStreamBatchMemOp_v2_ptsz, 668) X(cuEventCreate, 118) X(cuEventDestroy_v2, 325) \
  X(cuEventRecord, 119) X(cuEventRecord_ptsz, 441) X(cuEventRecordWithFlags, 587) \
  X(cuEventRecordWithFlags_ptsz, 588) X(cuEventSynchronize, 121) X(cuEventQuery, 120) X(cuEventElapsedTime_v2, 780) \
  X(cuCtxSynchronize, 17) X(cuCtxSynchronize_v2, 800) X(cuGraphInstantiate, 513) X(cuGraphInstantiate_v2, 578) \
  X(cuGraphInstantiateWithFlags, 643) X(cuGraphInstantiateWithParams, 656) X(cuGraphInstantiateWithParams_ptsz, 657) \
  X(cuGraphLaunch, 514) X(cuGraphLaunch_ptsz, 515) X(cuGraphUpload, 580) X(cuGraphUpload_ptsz, 581) \
  X(cuGraphDestroy, 517) X(cuGraphExecDestroy, 516) X(cuGraphExecUpdate, 561) X(cuGraphExecUpdate_v2, 696) \
  X(cuGraphExecKernelNodeSetParams, 538) X(cuGraphExecKernelNodeSetParams_v2, 692) \
  X(cuGraphExecMemcpyNodeSetParams, 562) X(cuGraphExecMemsetNodeSetParams, 563) X(cuGraphExecHostNodeSetParams, 564) \
  X(cuGraphExecChildGraphNodeSetParams, 586) X(cuGraphExecEventRecordNodeSetEvent, 595) \
  X(cuGraphExecEventWaitNodeSetEvent, 596) X(cuGraphExecExternalSemaphoresSignalNodeSetParams, 624) \
  X(cuGraphExecExternalSemaphoresWaitNodeSetParams, 625) X(cuGraphExecBatchMemOpNodeSetParams, 672) \
  X(cuGraphExecNodeSetParams, 714) X(cuGraphNodeSetEnabled, 650) X(cuModuleLoad, 18) X(cuModuleLoadData, 19) \
  X(cuModuleLoadDataEx, 20) X(cuModuleLoadFatBinary, 21) X(cuModuleUnload, 22) X(cuModuleGetFunction, 23) \
  X(cuModuleGetGlobal_v2, 241) X(cuLibraryLoadData, 678) X(cuLibraryLoadFromFile, 679) X(cuLibraryUnload, 680) \
  X(cuLibraryGetKernel, 681) X(cuLibraryGetModule, 682) X(cuLibraryGetGlobal, 684) X(cuLibraryGetManaged, 685) \
  X(cuKernelGetFunction, 683) X(cuLinkComplete, 365) X(cuIpcOpenMemHandle_v2, 567) X(cuIpcGetMemHandle, 328) \
  X(cuIpcCloseMemHandle, 330) X(cuIpcOpenEventHandle, 335) X(cuIpcGetEventHandle, 334) \
  X(cuImportExternalMemory, 485) X(cuExternalMemoryGetMappedBuffer, 486) \
  X(cuExternalMemoryGetMappedMipmappedArray, 487) X(cuDestroyExternalMemory, 488) X(cuImportExternalSemaphore, 489) \
  X(cuSignalExternalSemaphoresAsync, 490) X(cuSignalExternalSemaphoresAsync_ptsz, 491) \
  X(cuWaitExternalSemaphoresAsync, 492) X(cuWaitExternalSemaphoresAsync_ptsz, 493) X(cuMemPoolCreate, 607) \
  X(cuMemPoolImportFromShareableHandle, 614) X(cuMemPoolImportPointer, 616) X(cuMemImportFromShareableHandle, 555) \
  X(cuMemExportToShareableHandle, 554) X(cuMulticastCreate, 706) X(cuTexObjectCreate, 339) \
  X(cuSurfObjectCreate, 343) X(cuArrayCreate_v2, 272) X(cuArray3DCreate_v2, 274) X(cuMipmappedArrayCreate, 347) \
  X(cuGraphicsMapResources, 133) X(cuGraphicsMapResources_ptsz, 443) X(cuCtxCreate_v2, 235) X(cuCtxCreate_v3, 645) \
  X(cuCtxCreate_v4, 757) X(cuCtxDestroy_v2, 322) X(cuDevicePrimaryCtxRetain, 386) \
  X(cuDevicePrimaryCtxRelease_v2, 544) X(cuDevicePrimaryCtxReset_v2, 545) X(cuGreenCtxCreate, 743) \
  X(cuMemGetInfo_v2, 242) X(cuMemGetAddressRange_v2, 246) X(cuMemGetAllocationGranularity, 556) \
  X(cuModuleGetFunctionCount, 737) X(cuModuleEnumerateFunctions, 738) X(cuFuncGetAttribute, 85) \
  X(cuFuncSetAttribute, 481) X(cuFuncGetName, 718) X(cuFuncGetParamInfo, 733) X(cuFuncGetModule, 566) \
  X(cuKernelGetParamInfo, 734) X(cuGraphCreate, 501) X(cuGraphAddKernelNode, 502) X(cuGraphAddKernelNode_v2, 689) \
  X(cuGraphAddMemcpyNode, 504) X(cuGraphAddMemsetNode, 506) X(cuGraphAddEmptyNode, 526) X(cuGraphAddHostNode, 530) \
  X(cuGraphAddChildGraphNode, 525) X(cuGraphAddEventRecordNode, 589) X(cuGraphAddEventWaitNode, 590) \
  X(cuGraphAddMemAllocNode, 638) X(cuGraphAddMemFreeNode, 639) X(cuGraphAddNode, 712) X(cuGraphAddNode_v2, 723) \
  X(cuGraphAddDependencies, 518) X(cuGraphAddDependencies_v2, 727) X(cuGraphGetNodes, 534) \
  X(cuGraphGetRootNodes, 510) X(cuGraphGetEdges, 535) X(cuGraphGetEdges_v2, 724) X(cuGraphNodeGetType, 509) \
  X(cuGraphNodeGetDependencies, 511) X(cuGraphNodeGetDependencies_v2, 725) X(cuGraphKernelNodeGetParams, 503) \
  X(cuGraphKernelNodeGetParams_v2, 690) X(cuGraphKernelNodeSetParams_v2, 691) X(cuGraphKernelNodeSetAttribute, 571) \
  X(cuGraphKernelNodeGetAttribute, 570) X(cuGraphMemcpyNodeGetParams, 505) X(cuGraphMemsetNodeGetParams, 507) \
  X(cuGraphHostNodeGetParams, 531) X(cuGraphEventRecordNodeGetEvent, 591) X(cuGraphEventWaitNodeGetEvent, 592) \
  X(cuGraphChildGraphNodeGetGraph, 529) X(cuGraphClone, 523) X(cuGraphNodeFindInClone, 524) \
  X(cuStreamIsCapturing, 499) X(cuStreamIsCapturing_ptsz, 500) X(cuStreamGetCaptureInfo_v2, 629) \
  X(cuStreamGetCaptureInfo_v2_ptsz, 630) X(cuStreamGetCaptureInfo_v3, 729) X(cuStreamGetCaptureInfo_v3_ptsz, 730) \
  X(cuStreamGetFlags, 369) X(cuStreamGetFlags_ptsz, 435) X(cuStreamGetPriority, 368) \
  X(cuStreamGetPriority_ptsz, 434) X(cuStreamGetId, 693) X(cuStreamGetId_ptsz, 694) X(cuPointerGetAttribute, 310) \
  X(cuPointerGetAttributes, 450) X(cuCtxSetCurrent, 303) X(cuCtxGetCurrent, 304) X(cuCtxPushCurrent_v2, 323) \
  X(cuCtxPopCurrent_v2, 324)
// clang-format on

namespace kgate::gpu {

#define KGATE_ENUMERATOR(name, value) CUPTI_DRIVER_TRACE_CBID_##name = value,
enum CUpti_DriverCbid : uint32_t { CUPTI_DRIVER_TRACE_CBID_INVALID = 0, KGATE_CUPTI_DRIVER_CBIDS(KGATE_ENUMERATOR) };
#undef KGATE_ENUMERATOR

// More than any id that CUPTI of CUDA 13.0 uses.
inline constexpr uint32_t kDriverCbidLimit = 1024;

// The exported name of a driver callback id ("cuLaunchKernel_ptsz"); nullptr for one that is not in the table.
constexpr const char* driver_cbid_name(uint32_t cbid) {
  switch (cbid) {
#define KGATE_NAME(name, value) \
  case value: return #name;
    KGATE_CUPTI_DRIVER_CBIDS(KGATE_NAME)
#undef KGATE_NAME
  }
  return nullptr;
}

}  // namespace kgate::gpu
