//! Functions of the API that have no meaning here. They exist, so that programs link, and say so.

use std::ffi::c_int;

use crate::error::{Error, guarded};

macro_rules! unsupported {
    ($($name:ident)*) => {$(
        /// A function that is not supported.
        ///
        /// # Safety
        ///
        /// It has no conditions.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name() -> u32 {
            eprintln!("softcudart: {} is not supported by the emulation", stringify!($name));
            guarded(|| Err(Error::NOT_SUPPORTED))
        }
    )*};
}

/// `cudaChannelFormatDesc`: the form of an array's elements.
#[repr(C)]
pub(crate) struct ChannelFormat {
    bits: [c_int; 4],
    kind: u32,
}

/// The description of an array's elements, for calls on arrays, which say that they are not supported.
///
/// # Safety
///
/// It has no conditions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudaCreateChannelDesc(
    x: c_int,
    y: c_int,
    z: c_int,
    w: c_int,
    kind: u32,
) -> ChannelFormat {
    ChannelFormat {
        bits: [x, y, z, w],
        kind,
    }
}

unsupported! {
    cudaArrayGetInfo
    cudaArrayGetMemoryRequirements
    cudaArrayGetPlane
    cudaArrayGetSparseProperties
    cudaChooseDevice
    cudaCreateSurfaceObject
    cudaCreateTextureObject
    cudaCtxResetPersistingL2Cache
    cudaDestroyExternalMemory
    cudaDestroyExternalSemaphore
    cudaDestroySurfaceObject
    cudaDestroyTextureObject
    cudaDeviceFlushGPUDirectRDMAWrites
    cudaDeviceGetCacheConfig
    cudaDeviceGetGraphMemAttribute
    cudaDeviceGetMemPool
    cudaDeviceGetNvSciSyncAttributes
    cudaDeviceGetSharedMemConfig
    cudaDeviceGetTexture1DLinearMaxWidth
    cudaDeviceGraphMemTrim
    cudaDeviceRegisterAsyncNotification
    cudaDeviceSetGraphMemAttribute
    cudaDeviceSetMemPool
    cudaDeviceUnregisterAsyncNotification
    cudaExternalMemoryGetMappedBuffer
    cudaExternalMemoryGetMappedMipmappedArray
    cudaFreeArray
    cudaFreeMipmappedArray
    cudaFuncGetParamInfo
    cudaGetChannelDesc
    cudaGetDriverEntryPointByVersion
    cudaGetExportTable
    cudaGetKernel
    cudaGetMipmappedArrayLevel
    cudaGetSurfaceObjectResourceDesc
    cudaGetTextureObjectResourceDesc
    cudaGetTextureObjectResourceViewDesc
    cudaGetTextureObjectTextureDesc
    cudaGraphAddDependencies_v2
    cudaGraphAddExternalSemaphoresSignalNode
    cudaGraphAddExternalSemaphoresWaitNode
    cudaGraphAddMemAllocNode
    cudaGraphAddMemFreeNode
    cudaGraphAddNode
    cudaGraphAddNode_v2
    cudaGraphChildGraphNodeGetGraph
    cudaGraphConditionalHandleCreate
    cudaGraphDebugDotPrint
    cudaGraphEventRecordNodeGetEvent
    cudaGraphEventRecordNodeSetEvent
    cudaGraphEventWaitNodeGetEvent
    cudaGraphEventWaitNodeSetEvent
    cudaGraphExecChildGraphNodeSetParams
    cudaGraphExecEventRecordNodeSetEvent
    cudaGraphExecEventWaitNodeSetEvent
    cudaGraphExecExternalSemaphoresSignalNodeSetParams
    cudaGraphExecExternalSemaphoresWaitNodeSetParams
    cudaGraphExecGetFlags
    cudaGraphExecMemcpyNodeSetParamsFromSymbol
    cudaGraphExecMemcpyNodeSetParamsToSymbol
    cudaGraphExecNodeSetParams
    cudaGraphExecUpdate
    cudaGraphExternalSemaphoresSignalNodeGetParams
    cudaGraphExternalSemaphoresSignalNodeSetParams
    cudaGraphExternalSemaphoresWaitNodeGetParams
    cudaGraphExternalSemaphoresWaitNodeSetParams
    cudaGraphGetEdges
    cudaGraphGetEdges_v2
    cudaGraphGetRootNodes
    cudaGraphHostNodeGetParams
    cudaGraphHostNodeSetParams
    cudaGraphInstantiateWithParams
    cudaGraphKernelNodeCopyAttributes
    cudaGraphKernelNodeGetAttribute
    cudaGraphKernelNodeGetParams
    cudaGraphKernelNodeSetAttribute
    cudaGraphMemAllocNodeGetParams
    cudaGraphMemFreeNodeGetParams
    cudaGraphMemcpyNodeGetParams
    cudaGraphMemcpyNodeSetParams
    cudaGraphMemcpyNodeSetParams1D
    cudaGraphMemcpyNodeSetParamsFromSymbol
    cudaGraphMemcpyNodeSetParamsToSymbol
    cudaGraphMemsetNodeGetParams
    cudaGraphMemsetNodeSetParams
    cudaGraphNodeGetDependencies
    cudaGraphNodeGetDependencies_v2
    cudaGraphNodeGetDependentNodes
    cudaGraphNodeGetDependentNodes_v2
    cudaGraphNodeGetEnabled
    cudaGraphNodeGetType
    cudaGraphNodeSetEnabled
    cudaGraphNodeSetParams
    cudaGraphReleaseUserObject
    cudaGraphRemoveDependencies
    cudaGraphRemoveDependencies_v2
    cudaGraphRetainUserObject
    cudaGraphicsMapResources
    cudaGraphicsResourceGetMappedMipmappedArray
    cudaGraphicsResourceGetMappedPointer
    cudaGraphicsResourceSetMapFlags
    cudaGraphicsSubResourceGetMappedArray
    cudaGraphicsUnmapResources
    cudaGraphicsUnregisterResource
    cudaImportExternalMemory
    cudaImportExternalSemaphore
    cudaIpcGetEventHandle
    cudaIpcOpenEventHandle
    cudaKernelSetAttributeForDevice
    cudaLaunchCooperativeKernelMultiDevice
    cudaLibraryEnumerateKernels
    cudaLibraryGetGlobal
    cudaLibraryGetKernel
    cudaLibraryGetKernelCount
    cudaLibraryGetManaged
    cudaLibraryGetUnifiedFunction
    cudaLibraryLoadData
    cudaLibraryLoadFromFile
    cudaLibraryUnload
    cudaMalloc3DArray
    cudaMallocArray
    cudaMallocMipmappedArray
    cudaMemAdvise_v2
    cudaMemPoolCreate
    cudaMemPoolDestroy
    cudaMemPoolExportPointer
    cudaMemPoolExportToShareableHandle
    cudaMemPoolGetAccess
    cudaMemPoolImportFromShareableHandle
    cudaMemPoolImportPointer
    cudaMemPoolSetAccess
    cudaMemPrefetchAsync_v2
    cudaMemRangeGetAttribute
    cudaMemRangeGetAttributes
    cudaMemcpy2DArrayToArray
    cudaMemcpy2DFromArray
    cudaMemcpy2DFromArrayAsync
    cudaMemcpy2DToArray
    cudaMemcpy2DToArrayAsync
    cudaMemcpy3DBatchAsync
    cudaMemcpy3DPeer
    cudaMemcpy3DPeerAsync
    cudaMemcpyArrayToArray
    cudaMemcpyBatchAsync
    cudaMemcpyFromArray
    cudaMemcpyFromArrayAsync
    cudaMemcpyToArray
    cudaMemcpyToArrayAsync
    cudaMipmappedArrayGetMemoryRequirements
    cudaMipmappedArrayGetSparseProperties
    cudaOccupancyAvailableDynamicSMemPerBlock
    cudaOccupancyMaxActiveClusters
    cudaOccupancyMaxPotentialClusterSize
    cudaSetDoubleForDevice
    cudaSetDoubleForHost
    cudaSetValidDevices
    cudaSignalExternalSemaphoresAsync
    cudaSignalExternalSemaphoresAsync_ptsz
    cudaSignalExternalSemaphoresAsync_v2
    cudaStreamAttachMemAsync
    cudaStreamBeginCaptureToGraph
    cudaStreamCopyAttributes
    cudaStreamGetAttribute
    cudaStreamGetCaptureInfo
    cudaStreamGetCaptureInfo_ptsz
    cudaStreamGetCaptureInfo_v2
    cudaStreamGetCaptureInfo_v3
    cudaStreamSetAttribute
    cudaStreamUpdateCaptureDependencies
    cudaStreamUpdateCaptureDependencies_v2
    cudaThreadExit
    cudaThreadGetCacheConfig
    cudaThreadGetLimit
    cudaThreadSetCacheConfig
    cudaThreadSetLimit
    cudaUserObjectCreate
    cudaUserObjectRelease
    cudaUserObjectRetain
    cudaWaitExternalSemaphoresAsync
    cudaWaitExternalSemaphoresAsync_ptsz
    cudaWaitExternalSemaphoresAsync_v2
}
