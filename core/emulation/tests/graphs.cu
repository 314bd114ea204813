// Graphs made node by node, their clones and changes; memory and copies of three dimensions.
#include <cstdio>
#include <cstring>
#include <cuda_profiler_api.h>
#include <vector>
#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            printf("line %d: %s is wrong: %s\n", __LINE__, #x, cudaGetErrorString(cudaGetLastError())); \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)
#define OK(x) CHECK((x) == cudaSuccess)

__device__ int variable;
// The order of two kernels shows in the result.
__global__ void multiply(int* at, int by) { *at *= by; }
__global__ void add(int* at, int value) { *at += value; }
__global__ void fill(int* at, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) at[i] = i * i;
}
void count(void* calls) { ++*(int*)calls; }

cudaKernelNodeParams launch(void* kernel, void** arguments, dim3 grid = 1, dim3 block = 1) {
    cudaKernelNodeParams node = {};
    node.func = kernel, node.gridDim = grid, node.blockDim = block, node.kernelParams = arguments;
    return node;
}

int graphs() {
    int *data, *host, calls = 0, three = 3, four = 4, n = 256;
    OK(cudaMalloc(&data, 1024));
    OK(cudaMallocHost(&host, 1024));
    int *plus = data, *square = data + 1;
    void *by_three[] = {&plus, &three}, *by_four[] = {&plus, &four};
    cudaGraph_t graph;
    OK(cudaGraphCreate(&graph, 0));
    // 0, then + 3, * 4, + 4: 16. The last is made first: dependencies make the order.
    cudaGraphNode_t last, zero, first, second, back, called, nothing;
    cudaKernelNodeParams node = launch((void*)add, by_four);
    OK(cudaGraphAddKernelNode(&last, graph, nullptr, 0, &node));
    cudaMemsetParams set = {};
    set.dst = data, set.elementSize = 4, set.width = 1, set.height = 1, set.value = 0;
    OK(cudaGraphAddMemsetNode(&zero, graph, nullptr, 0, &set));
    node = launch((void*)add, by_three);
    OK(cudaGraphAddKernelNode(&first, graph, &zero, 1, &node));
    node = launch((void*)multiply, by_four);
    OK(cudaGraphAddKernelNode(&second, graph, &first, 1, &node));
    OK(cudaGraphAddEmptyNode(&nothing, graph, &second, 1));
    OK(cudaGraphAddDependencies(graph, &nothing, &last, 1));
    CHECK(cudaGraphAddDependencies(graph, &nothing, &last, 1) == cudaErrorInvalidValue);
    OK(cudaGraphAddMemcpyNode1D(&back, graph, &last, 1, host, data, 4, cudaMemcpyDeviceToHost));
    cudaHostNodeParams function = {count, &calls};
    OK(cudaGraphAddHostNode(&called, graph, &back, 1, &function));
    size_t nodes = 0;
    OK(cudaGraphGetNodes(graph, nullptr, &nodes));
    CHECK(nodes == 7);
    cudaGraphNode_t all[9];
    nodes = 9;
    OK(cudaGraphGetNodes(graph, all, &nodes));
    CHECK(nodes == 7 && all[0] == last && all[1] == zero && all[6] == called && all[8] == nullptr);

    // Arguments are those of the time when the node was made.
    three = four = 100;
    cudaGraphExec_t ready;
    OK(cudaGraphInstantiate(&ready, graph, 0));
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    for (int i = 1; i <= 3; ++i) {
        *host = -1;
        OK(cudaGraphLaunch(ready, stream));
        OK(cudaStreamSynchronize(stream));
        CHECK(*host == 16 && calls == i);
    }
    // A change of the one that is ready: the graph stays as it is.
    int seven = 7;
    void* by_seven[] = {&plus, &seven};
    node = launch((void*)add, by_seven);
    OK(cudaGraphExecKernelNodeSetParams(ready, first, &node));
    OK(cudaGraphLaunch(ready, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(*host == 7 * 4 + 4);
    CHECK(cudaGraphExecKernelNodeSetParams(ready, zero, &node) == cudaErrorInvalidValue);
    set.value = 1;
    OK(cudaGraphExecMemsetNodeSetParams(ready, zero, &set));
    OK(cudaGraphExecMemcpyNodeSetParams1D(ready, back, host + 1, data, 4, cudaMemcpyDeviceToHost));
    int other_calls = 0;
    function.userData = &other_calls;
    OK(cudaGraphExecHostNodeSetParams(ready, called, &function));
    OK(cudaGraphLaunch(ready, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(host[1] == 8 * 4 + 4 && other_calls == 1 && calls == 4);

    // A clone is another graph.
    cudaGraph_t clone;
    cudaGraphNode_t other;
    OK(cudaGraphClone(&clone, graph));
    OK(cudaGraphNodeFindInClone(&other, second, clone));
    CHECK(other != second && cudaGraphNodeFindInClone(&other, other, clone) == cudaErrorInvalidValue);
    OK(cudaGraphNodeFindInClone(&other, second, clone));
    OK(cudaGraphDestroyNode(other));
    cudaGraphExec_t ready_clone;
    OK(cudaGraphInstantiate(&ready_clone, clone, 0));
    OK(cudaGraphLaunch(ready_clone, stream));
    OK(cudaStreamSynchronize(stream));
    // Without its middle node the last one depends on nothing, and may come first; then zero is set behind it.
    CHECK(*host == 3 || *host == 7);
    OK(cudaGraphGetNodes(graph, nullptr, &nodes));
    CHECK(nodes == 7);
    OK(cudaGraphKernelNodeSetParams(second, &node));
    OK(cudaGraphExecDestroy(ready));
    OK(cudaGraphInstantiate(&ready, graph, 0));
    OK(cudaGraphLaunch(ready, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(*host == 3 + 7 + 4);

    // A graph in a graph, events, variables, rows, and a circle.
    cudaGraph_t outer;
    cudaGraphNode_t child, record, wait, to_variable, from_variable, rows, filled;
    cudaEvent_t event;
    OK(cudaEventCreate(&event));
    OK(cudaGraphCreate(&outer, 0));
    OK(cudaGraphAddChildGraphNode(&child, outer, nullptr, 0, graph));
    OK(cudaGraphAddEventRecordNode(&record, outer, &child, 1, event));
    OK(cudaGraphAddEventWaitNode(&wait, outer, &record, 1, event));
    OK(cudaGraphAddMemcpyNodeToSymbol(&to_variable, outer, &wait, 1, variable, data, 4, 0, cudaMemcpyDeviceToDevice));
    OK(cudaGraphAddMemcpyNodeFromSymbol(&from_variable, outer, &to_variable, 1, host + 2, variable, 4, 0, cudaMemcpyDeviceToHost));
    void* filling[] = {&square, &n};
    n = 200;
    node = launch((void*)fill, filling, 4, 64);
    OK(cudaGraphAddKernelNode(&filled, outer, nullptr, 0, &node));
    // Of rows of ten words the first two.
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(square, 40, 40, 4), copy.dstPtr = make_cudaPitchedPtr(host + 3, 8, 8, 4);
    copy.extent = make_cudaExtent(8, 4, 1), copy.kind = cudaMemcpyDeviceToHost;
    OK(cudaGraphAddMemcpyNode(&rows, outer, &filled, 1, &copy));
    cudaGraphExec_t ready_outer;
    OK(cudaGraphInstantiate(&ready_outer, outer, 0));
    OK(cudaGraphDestroy(graph));
    OK(cudaGraphLaunch(ready_outer, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(host[2] == 14 && cudaEventQuery(event) == cudaSuccess);
    for (int i = 0; i < 8; ++i) CHECK(host[3 + i] == (i / 2 * 10 + i % 2) * (i / 2 * 10 + i % 2));
    OK(cudaGraphAddDependencies(outer, &from_variable, &child, 1));
    CHECK(cudaGraphInstantiate(&ready, outer, 0) == cudaErrorInvalidValue);
    CHECK(cudaGraphAddEmptyNode(&nothing, outer, &second, 1) == cudaErrorInvalidValue);
    cudaGetLastError();

    // Nodes added to what was captured.
    cudaGraph_t captured;
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(cudaMemsetAsync(data, 0, 4, stream));
    add<<<1, 1, 0, stream>>>(data, 5);
    OK(cudaStreamEndCapture(stream, &captured));
    nodes = 2;
    OK(cudaGraphGetNodes(captured, all, &nodes));
    node = launch((void*)add, by_seven);
    OK(cudaGraphAddKernelNode(&last, captured, all + 1, 1, &node));
    OK(cudaGraphAddMemcpyNode1D(&back, captured, &last, 1, host, data, 4, cudaMemcpyDeviceToHost));
    OK(cudaGraphInstantiate(&ready, captured, 0));
    OK(cudaGraphLaunch(ready, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(*host == 12);
    return 0;
}

__global__ void cubes(cudaPitchedPtr at, cudaExtent extent) {
    for (int z = 0; z < extent.depth; ++z) {
        for (int y = threadIdx.x; y < extent.height; y += blockDim.x) {
            int* row = (int*)((char*)at.ptr + (z * at.ysize + y) * at.pitch);
            for (int x = 0; x < extent.width / 4; ++x) row[x] = x + 100 * y + 10000 * z;
        }
    }
}
int planes() {
    const cudaExtent extent = make_cudaExtent(7 * sizeof(int), 5, 3);
    cudaPitchedPtr at;
    OK(cudaMalloc3D(&at, extent));
    CHECK(at.pitch >= extent.width && at.xsize == extent.width && at.ysize == 5);
    cubes<<<1, 4>>>(at, extent);
    std::vector<int> host(2 * 3 * 4, -1);
    // Two words of rows 1 to 3 of planes 1 and 2, to the second column of rows of four words.
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = at, copy.srcPos = make_cudaPos(4 * sizeof(int), 1, 1);
    copy.dstPtr = make_cudaPitchedPtr(host.data(), 16, 16, 3), copy.dstPos = make_cudaPos(4, 0, 0);
    copy.extent = make_cudaExtent(8, 3, 2), copy.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3D(&copy));
    for (int i = 0; i < 24; ++i) {
        const int x = i % 4, y = i / 4 % 3, z = i / 12;
        CHECK(host[i] == (x == 1 || x == 2 ? x + 3 + 100 * (y + 1) + 10000 * (z + 1) : -1));
    }
    // And back, in a stream, behind a fill.
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    OK(cudaMemset3DAsync(at, 0, extent, stream));
    std::swap(copy.srcPtr, copy.dstPtr), std::swap(copy.srcPos, copy.dstPos);
    copy.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3DAsync(&copy, stream));
    OK(cudaStreamSynchronize(stream));
    std::vector<int> whole(7 * 5 * 3, -1);
    OK(cudaMemcpy2D(whole.data(), 28, at.ptr, at.pitch, 28, 15, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 105; ++i) {
        const int x = i % 7, y = i / 7 % 5, z = i / 35;
        const bool inside = x >= 4 && x < 6 && y >= 1 && y < 4 && z >= 1;
        CHECK(whole[i] == (inside ? x + 100 * y + 10000 * z : 0));
    }
    OK(cudaMemset3D(at, 1, make_cudaExtent(4, 1, 3)));
    OK(cudaMemset2D(at.ptr, at.pitch, 2, 1, 2));
    OK(cudaMemcpy2D(whole.data(), 28, at.ptr, at.pitch, 28, 15, cudaMemcpyDeviceToHost));
    CHECK(whole[0] == 0x01010102 && whole[7] == 2 && whole[35] == 0x01010101 && whole[70] == 0x01010101);
    copy.extent.depth = 100;
    copy.extent.height = 4;
    CHECK(cudaMemcpy3D(&copy) == cudaErrorInvalidValue);
    cudaGetLastError();
    return 0;
}

int main() {
    OK(cudaProfilerStart());
    if (graphs() || planes()) return 1;
    OK(cudaProfilerStop());
    puts("graphs: all right");
}
