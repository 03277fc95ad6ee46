// matvec_ref: what matvec must compute, in double. A row a thread, grid-stride: any one-dimensional grid and block.

extern "C" __global__ void matvec_ref(double* out, const float* w, const float* x, int rows, int cols) {
  for (long long row = blockIdx.x * (long long)blockDim.x + threadIdx.x; row < rows; row += (long long)gridDim.x * blockDim.x) {
    double sum = 0.0;
    for (int c = 0; c < cols; ++c) sum += (double)w[row * cols + c] * x[c];
    out[row] = sum;
  }
}
