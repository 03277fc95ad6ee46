// Callback ids of the CUDA runtime's calls, as RUNTIME activity records carry them: X(name, id). A name carries the
// version of the toolkit that brought its present form. Those that say something about an application's time are here,
// and what is called all the time; an id without a name is a call all the same. Compared with the toolkit's header at
// compile time (abi_check.cpp).
#pragma once

// clang-format off
#define KGATE_CUPTI_RUNTIME_CBIDS(X) \
  X(cudaDriverGetVersion_v3020, 1) X(cudaRuntimeGetVersion_v3020, 2) X(cudaGetDeviceCount_v3020, 3) \
  X(cudaGetDeviceProperties_v3020, 4) X(cudaChooseDevice_v3020, 5) X(cudaConfigureCall_v3020, 8) \
  X(cudaSetupArgument_v3020, 9) X(cudaGetLastError_v3020, 10) X(cudaPeekAtLastError_v3020, 11) \
  X(cudaGetErrorString_v3020, 12) X(cudaLaunch_v3020, 13) X(cudaFuncGetAttributes_v3020, 15) \
  X(cudaSetDevice_v3020, 16) X(cudaGetDevice_v3020, 17) X(cudaSetDeviceFlags_v3020, 19) X(cudaMalloc_v3020, 20) \
  X(cudaMallocPitch_v3020, 21) X(cudaFree_v3020, 22) X(cudaMallocArray_v3020, 23) X(cudaFreeArray_v3020, 24) \
  X(cudaMallocHost_v3020, 25) X(cudaFreeHost_v3020, 26) X(cudaHostAlloc_v3020, 27) \
  X(cudaHostGetDevicePointer_v3020, 28) X(cudaHostGetFlags_v3020, 29) X(cudaMemGetInfo_v3020, 30) \
  X(cudaMemcpy_v3020, 31) X(cudaMemcpy2D_v3020, 32) X(cudaMemcpyToArray_v3020, 33) X(cudaMemcpy2DToArray_v3020, 34) \
  X(cudaMemcpyFromArray_v3020, 35) X(cudaMemcpy2DFromArray_v3020, 36) X(cudaMemcpyArrayToArray_v3020, 37) \
  X(cudaMemcpy2DArrayToArray_v3020, 38) X(cudaMemcpyToSymbol_v3020, 39) X(cudaMemcpyFromSymbol_v3020, 40) \
  X(cudaMemcpyAsync_v3020, 41) X(cudaMemcpyToArrayAsync_v3020, 42) X(cudaMemcpyFromArrayAsync_v3020, 43) \
  X(cudaMemcpy2DAsync_v3020, 44) X(cudaMemcpy2DToArrayAsync_v3020, 45) X(cudaMemcpy2DFromArrayAsync_v3020, 46) \
  X(cudaMemcpyToSymbolAsync_v3020, 47) X(cudaMemcpyFromSymbolAsync_v3020, 48) X(cudaMemset_v3020, 49) \
  X(cudaMemset2D_v3020, 50) X(cudaMemsetAsync_v3020, 51) X(cudaMemset2DAsync_v3020, 52) X(cudaThreadExit_v3020, 123) \
  X(cudaThreadSynchronize_v3020, 126) X(cudaStreamCreate_v3020, 129) X(cudaStreamDestroy_v3020, 130) \
  X(cudaStreamSynchronize_v3020, 131) X(cudaStreamQuery_v3020, 132) X(cudaEventCreate_v3020, 133) \
  X(cudaEventCreateWithFlags_v3020, 134) X(cudaEventRecord_v3020, 135) X(cudaEventDestroy_v3020, 136) \
  X(cudaEventSynchronize_v3020, 137) X(cudaEventQuery_v3020, 138) X(cudaEventElapsedTime_v3020, 139) \
  X(cudaMalloc3D_v3020, 140) X(cudaMalloc3DArray_v3020, 141) X(cudaMemset3D_v3020, 142) \
  X(cudaMemset3DAsync_v3020, 143) X(cudaMemcpy3D_v3020, 144) X(cudaMemcpy3DAsync_v3020, 145) \
  X(cudaStreamWaitEvent_v3020, 147) X(cudaPointerGetAttributes_v4000, 151) X(cudaHostRegister_v4000, 152) \
  X(cudaHostUnregister_v4000, 153) X(cudaDeviceCanAccessPeer_v4000, 154) X(cudaDeviceEnablePeerAccess_v4000, 155) \
  X(cudaDeviceDisablePeerAccess_v4000, 156) X(cudaMemcpyPeer_v4000, 160) X(cudaMemcpyPeerAsync_v4000, 161) \
  X(cudaMemcpy3DPeer_v4000, 162) X(cudaMemcpy3DPeerAsync_v4000, 163) X(cudaDeviceReset_v3020, 164) \
  X(cudaDeviceSynchronize_v3020, 165) X(cudaDeviceGetByPCIBusId_v4010, 173) X(cudaDeviceGetPCIBusId_v4010, 174) \
  X(cudaArrayGetInfo_v4010, 181) X(cudaMallocMipmappedArray_v5000, 192) X(cudaGetMipmappedArrayLevel_v5000, 193) \
  X(cudaFreeMipmappedArray_v5000, 194) X(cudaStreamAddCallback_v5000, 197) X(cudaStreamCreateWithFlags_v5000, 198) \
  X(cudaDeviceGetAttribute_v5000, 200) X(cudaStreamDestroy_v5050, 201) X(cudaStreamCreateWithPriority_v5050, 202) \
  X(cudaStreamGetPriority_v5050, 203) X(cudaStreamGetFlags_v5050, 204) \
  X(cudaDeviceGetStreamPriorityRange_v5050, 205) X(cudaMallocManaged_v6000, 206) \
  X(cudaStreamAttachMemAsync_v6000, 208) X(cudaGetErrorName_v6050, 209) X(cudaLaunchKernel_v7000, 211) \
  X(cudaGetDeviceFlags_v7000, 212) X(cudaLaunch_ptsz_v7000, 213) X(cudaLaunchKernel_ptsz_v7000, 214) \
  X(cudaMemcpy_ptds_v7000, 215) X(cudaMemcpy2D_ptds_v7000, 216) X(cudaMemcpyToArray_ptds_v7000, 217) \
  X(cudaMemcpy2DToArray_ptds_v7000, 218) X(cudaMemcpyFromArray_ptds_v7000, 219) \
  X(cudaMemcpy2DFromArray_ptds_v7000, 220) X(cudaMemcpyArrayToArray_ptds_v7000, 221) \
  X(cudaMemcpy2DArrayToArray_ptds_v7000, 222) X(cudaMemcpyToSymbol_ptds_v7000, 223) \
  X(cudaMemcpyFromSymbol_ptds_v7000, 224) X(cudaMemcpyAsync_ptsz_v7000, 225) \
  X(cudaMemcpyToArrayAsync_ptsz_v7000, 226) X(cudaMemcpyFromArrayAsync_ptsz_v7000, 227) \
  X(cudaMemcpy2DAsync_ptsz_v7000, 228) X(cudaMemcpy2DToArrayAsync_ptsz_v7000, 229) \
  X(cudaMemcpy2DFromArrayAsync_ptsz_v7000, 230) X(cudaMemcpyToSymbolAsync_ptsz_v7000, 231) \
  X(cudaMemcpyFromSymbolAsync_ptsz_v7000, 232) X(cudaMemset_ptds_v7000, 233) X(cudaMemset2D_ptds_v7000, 234) \
  X(cudaMemsetAsync_ptsz_v7000, 235) X(cudaMemset2DAsync_ptsz_v7000, 236) X(cudaStreamGetPriority_ptsz_v7000, 237) \
  X(cudaStreamGetFlags_ptsz_v7000, 238) X(cudaStreamSynchronize_ptsz_v7000, 239) X(cudaStreamQuery_ptsz_v7000, 240) \
  X(cudaStreamAttachMemAsync_ptsz_v7000, 241) X(cudaEventRecord_ptsz_v7000, 242) X(cudaMemset3D_ptds_v7000, 243) \
  X(cudaMemset3DAsync_ptsz_v7000, 244) X(cudaMemcpy3D_ptds_v7000, 245) X(cudaMemcpy3DAsync_ptsz_v7000, 246) \
  X(cudaStreamWaitEvent_ptsz_v7000, 247) X(cudaStreamAddCallback_ptsz_v7000, 248) \
  X(cudaMemcpy3DPeer_ptds_v7000, 249) X(cudaMemcpy3DPeerAsync_ptsz_v7000, 250) X(cudaMemPrefetchAsync_v8000, 252) \
  X(cudaMemPrefetchAsync_ptsz_v8000, 253) X(cudaMemAdvise_v8000, 254) X(cudaLaunchCooperativeKernel_v9000, 269) \
  X(cudaLaunchCooperativeKernel_ptsz_v9000, 270) X(cudaLaunchCooperativeKernelMultiDevice_v9000, 272) \
  X(cudaFuncSetAttribute_v9000, 273) X(cudaLaunchHostFunc_v10000, 284) X(cudaLaunchHostFunc_ptsz_v10000, 285) \
  X(cudaGraphCreate_v10000, 286) X(cudaGraphClone_v10000, 301) X(cudaGraphInstantiate_v10000, 310) \
  X(cudaGraphLaunch_v10000, 311) X(cudaGraphLaunch_ptsz_v10000, 312) X(cudaGraphExecDestroy_v10000, 313) \
  X(cudaGraphDestroy_v10000, 314) X(cudaStreamBeginCapture_v10000, 315) X(cudaStreamBeginCapture_ptsz_v10000, 316) \
  X(cudaStreamIsCapturing_v10000, 317) X(cudaStreamIsCapturing_ptsz_v10000, 318) X(cudaStreamEndCapture_v10000, 319) \
  X(cudaStreamEndCapture_ptsz_v10000, 320) X(cudaStreamGetCaptureInfo_v10010, 324) \
  X(cudaStreamGetCaptureInfo_ptsz_v10010, 325) X(cudaThreadExchangeStreamCaptureMode_v10010, 327) \
  X(cudaStreamSetFlags_v10200, 330) X(cudaStreamSetFlags_ptsz_v10200, 331) X(cudaGraphExecUpdate_v10020, 335) \
  X(cudaGetFuncBySymbol_v11000, 336) X(cudaGraphUpload_v10000, 348) X(cudaGraphUpload_ptsz_v10000, 349) \
  X(cudaEventRecordWithFlags_v11010, 370) X(cudaEventRecordWithFlags_ptsz_v11010, 371) \
  X(cudaDeviceGetDefaultMemPool_v11020, 372) X(cudaMallocAsync_v11020, 373) X(cudaMallocAsync_ptsz_v11020, 374) \
  X(cudaFreeAsync_v11020, 375) X(cudaFreeAsync_ptsz_v11020, 376) X(cudaMemPoolTrimTo_v11020, 377) \
  X(cudaMemPoolSetAccess_v11020, 380) X(cudaArrayGetPlane_v11020, 381) X(cudaMemPoolGetAccess_v11020, 382) \
  X(cudaMemPoolCreate_v11020, 383) X(cudaMemPoolDestroy_v11020, 384) X(cudaDeviceSetMemPool_v11020, 385) \
  X(cudaDeviceGetMemPool_v11020, 386) X(cudaMemPoolExportToShareableHandle_v11020, 387) \
  X(cudaMemPoolImportFromShareableHandle_v11020, 388) X(cudaMemPoolExportPointer_v11020, 389) \
  X(cudaMemPoolImportPointer_v11020, 390) X(cudaMallocFromPoolAsync_v11020, 391) \
  X(cudaMallocFromPoolAsync_ptsz_v11020, 392) X(cudaGetDriverEntryPoint_v11030, 406) \
  X(cudaGetDriverEntryPoint_ptsz_v11030, 407) X(cudaGraphDebugDotPrint_v11030, 408) \
  X(cudaStreamGetCaptureInfo_v2_v11030, 409) X(cudaStreamGetCaptureInfo_v2_ptsz_v11030, 410) \
  X(cudaGraphInstantiateWithFlags_v11040, 418) X(cudaDeviceGraphMemTrim_v11040, 423) \
  X(cudaLaunchKernelExC_v11060, 430) X(cudaLaunchKernelExC_ptsz_v11060, 431) \
  X(cudaGraphInstantiateWithParams_v12000, 436) X(cudaGraphInstantiateWithParams_ptsz_v12000, 437) \
  X(cudaGraphExecGetFlags_v12000, 438) X(cudaGetKernel_v12000, 439) X(cudaGetDeviceProperties_v12000, 440) \
  X(cudaStreamGetId_v12000, 441) X(cudaStreamGetId_ptsz_v12000, 442) X(cudaGraphInstantiate_v12000, 443) \
  X(cudaInitDevice_v12000, 444) X(cudaMemAdvise_v12020, 448) X(cudaMemPrefetchAsync_v12020, 449) \
  X(cudaMemPrefetchAsync_ptsz_v12020, 450) X(cudaFuncGetName_v12030, 451) \
  X(cudaStreamBeginCaptureToGraph_v12030, 452) X(cudaStreamBeginCaptureToGraph_ptsz_v12030, 453) \
  X(cudaGraphConditionalHandleCreate_v12030, 454) X(cudaStreamGetCaptureInfo_v12030, 461) \
  X(cudaStreamGetCaptureInfo_ptsz_v12030, 462) X(cudaFuncGetParamInfo_v12040, 467) \
  X(cudaGetDriverEntryPointByVersion_v12050, 468) X(cudaGetDriverEntryPointByVersion_ptsz_v12050, 469) \
  X(cudaLibraryLoadData_v12060, 470) X(cudaLibraryLoadFromFile_v12060, 471) X(cudaLibraryUnload_v12060, 472) \
  X(cudaLibraryGetKernel_v12060, 473) X(cudaLibraryGetGlobal_v12060, 474) X(cudaLibraryGetManaged_v12060, 475) \
  X(cudaLibraryGetUnifiedFunction_v12060, 476) X(cudaLibraryGetKernelCount_v12060, 477) \
  X(cudaLibraryEnumerateKernels_v12060, 478) X(cudaStreamGetDevice_v12080, 480) \
  X(cudaStreamGetDevice_ptsz_v12080, 481) X(cudaMemcpyBatchAsync_v12080, 482) \
  X(cudaMemcpyBatchAsync_ptsz_v12080, 483) X(cudaMemcpy3DBatchAsync_v12080, 484) \
  X(cudaMemcpy3DBatchAsync_ptsz_v12080, 485) X(cudaEventElapsedTime_v12080, 486) \
  X(cudaMemPrefetchBatchAsync_v13000, 487) X(cudaMemPrefetchBatchAsync_ptsz_v13000, 488) \
  X(cudaMemDiscardBatchAsync_v13000, 489) X(cudaMemDiscardBatchAsync_ptsz_v13000, 490) \
  X(cudaMemDiscardAndPrefetchBatchAsync_v13000, 491) X(cudaMemDiscardAndPrefetchBatchAsync_ptsz_v13000, 492) \
  X(__cudaRegisterFatBinary_v13000, 494) X(__cudaRegisterFatBinaryEnd_v13000, 495) \
  X(__cudaUnregisterFatBinary_v13000, 496) X(__cudaRegisterVar_v13000, 497) X(__cudaRegisterHostVar_v13000, 498) \
  X(__cudaRegisterFunction_v13000, 499) X(__cudaRegisterManagedVar_v13000, 500) X(__cudaInitModule_v13000, 501) \
  X(__cudaPushCallConfiguration_v13000, 502) X(__cudaPopCallConfiguration_v13000, 503) \
  X(__cudaGetKernel_v13000, 504) X(__cudaLaunchKernel_v13000, 505) X(__cudaLaunchKernel_ptsz_v13000, 506) \
  X(__cudaRegisterUnifiedTable_v13000, 507) X(__cudaGetProcAddress_v13000, 508) X(cudaMemcpyBatchAsync_v13000, 509) \
  X(cudaMemcpyBatchAsync_ptsz_v13000, 510) X(cudaMemcpy3DBatchAsync_v13000, 511) \
  X(cudaMemcpy3DBatchAsync_ptsz_v13000, 512) X(cudaMemGetDefaultMemPool_v13000, 518) \
  X(cudaMemGetMemPool_v13000, 519) X(cudaMemSetMemPool_v13000, 520)
// clang-format on
