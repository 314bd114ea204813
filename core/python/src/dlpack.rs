//! DLPack: tensors of other libraries as memory, and parts of blocks as tensors.
//!
//! The layouts are those of `dlpack.h` 1.0, and of the versions before it.

use std::ffi::{CStr, c_void};
use std::ptr::{NonNull, null_mut};

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;

const NAME: &CStr = c"dltensor";
const USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";
/// The flag of a tensor that may not be written.
const READ_ONLY: u64 = 1;
/// The major version that is read and made.
const MAJOR: u32 = 1;

#[repr(C)]
#[derive(Clone, Copy)]
struct Device {
    kind: i32,
    number: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// A `DLTensor`.
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: Device,
    dimensions: i32,
    data_type: DataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// A `DLManagedTensor`.
#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// A `DLManagedTensorVersioned`.
#[repr(C)]
struct ManagedVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// A tensor that another library lends.
enum Lent {
    Plain(NonNull<Managed>),
    Versioned(NonNull<ManagedVersioned>),
}

// SAFETY: a tensor's deleter may be called by any thread.
unsafe impl Send for Lent {}
// SAFETY: the fields are read once, when it is made.
unsafe impl Sync for Lent {}

impl Drop for Lent {
    fn drop(&mut self) {
        match self {
            Lent::Plain(tensor) => {
                // SAFETY: the capsule gave the tensor up to this value, which is its only user, and calls its deleter once.
                unsafe {
                    if let Some(delete) = tensor.as_ref().deleter {
                        delete(tensor.as_ptr());
                    }
                }
            }
            Lent::Versioned(tensor) => {
                // SAFETY: as above.
                unsafe {
                    if let Some(delete) = tensor.as_ref().deleter {
                        delete(tensor.as_ptr());
                    }
                }
            }
        }
    }
}

/// A tensor's memory. It is given back with this.
#[pyclass(frozen, module = "oxshmem._oxshmem")]
pub(crate) struct Tensor {
    _lent: Lent,
    #[pyo3(get)]
    address: usize,
    #[pyo3(get)]
    shape: Vec<i64>,
    /// In elements; none where the elements lie one after the other.
    #[pyo3(get)]
    strides: Option<Vec<i64>>,
    /// Code, bits and lanes.
    #[pyo3(get)]
    data_type: (u8, u8, u16),
    /// Kind and number.
    #[pyo3(get)]
    device: (i32, i32),
    #[pyo3(get)]
    is_read_only: bool,
}

/// Takes a tensor out of a capsule.
#[pyfunction]
pub(crate) fn dlpack_import(capsule: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let raw = capsule.as_ptr();
    // SAFETY: the object is alive; the call checks that it is a capsule of that name.
    let is = |name: &CStr| unsafe { ffi::PyCapsule_IsValid(raw, name.as_ptr()) } == 1;
    let (name, used) = match (is(VERSIONED), is(NAME)) {
        (true, _) => (VERSIONED, USED_VERSIONED),
        (_, true) => (NAME, USED),
        _ => {
            return Err(PyTypeError::new_err(
                "no capsule of DLPack's, or one that was used before; give a new one, as __dlpack__() makes it",
            ));
        }
    };
    // SAFETY: a valid capsule of that name.
    let pointer = unsafe { ffi::PyCapsule_GetPointer(raw, name.as_ptr()) };
    let Some(pointer) = NonNull::new(pointer) else {
        return Err(PyErr::fetch(capsule.py()));
    };
    if name == VERSIONED {
        // SAFETY: a capsule of that name has such a tensor, of which the version is the first field in all versions.
        let major = unsafe { pointer.cast::<ManagedVersioned>().as_ref() }.major;
        if major != MAJOR {
            return Err(PyBufferError::new_err(format!(
                "a tensor of DLPack {major}; ask for version {MAJOR} by max_version"
            )));
        }
    }
    // SAFETY: a capsule; the name is static. From here on it does not delete the tensor.
    if unsafe { ffi::PyCapsule_SetName(raw, used.as_ptr()) } != 0 {
        return Err(PyErr::fetch(capsule.py()));
    }
    let (lent, flags) = if name == VERSIONED {
        let tensor = pointer.cast::<ManagedVersioned>();
        // SAFETY: as above, of this version.
        (Lent::Versioned(tensor), unsafe { tensor.as_ref() }.flags)
    } else {
        (Lent::Plain(pointer.cast()), 0)
    };
    let tensor = match &lent {
        // SAFETY: the tensor is alive until `lent` is dropped.
        Lent::Plain(tensor) => unsafe { &tensor.as_ref().tensor },
        // SAFETY: as above.
        Lent::Versioned(tensor) => unsafe { &tensor.as_ref().tensor },
    };
    let dimensions = usize::try_from(tensor.dimensions).unwrap_or_default();
    let numbers = |from: *mut i64| -> Vec<i64> {
        if from.is_null() || dimensions == 0 {
            return Vec::new();
        }
        // SAFETY: a tensor's shape and strides have a number for each dimension.
        unsafe { std::slice::from_raw_parts(from, dimensions) }.to_vec()
    };
    let type_of = tensor.data_type;
    let address = tensor.data.expose_provenance();
    Ok(Tensor {
        address: address.wrapping_add(usize::try_from(tensor.byte_offset).unwrap_or_default()),
        shape: numbers(tensor.shape),
        strides: (!tensor.strides.is_null()).then(|| numbers(tensor.strides)),
        data_type: (type_of.code, type_of.bits, type_of.lanes),
        device: (tensor.device.kind, tensor.device.number),
        is_read_only: flags & READ_ONLY != 0,
        _lent: lent,
    })
}

/// A tensor of this module's, and what it refers to.
struct Exported<M> {
    managed: M,
    _shape: Vec<i64>,
    _strides: Vec<i64>,
    _owner: Py<PyAny>,
}

/// Deletes a tensor of `dlpack_export`.
unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: the context is the box that the export leaked, and a deleter is called once.
    drop(unsafe { Box::from_raw((*managed).context.cast::<Exported<Managed>>()) });
}

/// The same of a versioned one.
unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: as above.
    drop(unsafe { Box::from_raw((*managed).context.cast::<Exported<ManagedVersioned>>()) });
}

/// Deletes the tensor of a capsule that nobody has used.
unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: Python gives a capsule that was made below.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

/// A capsule with a tensor at an address, which keeps its owner.
#[pyfunction]
pub(crate) fn dlpack_export(
    py: Python<'_>,
    owner: Py<PyAny>,
    address: usize,
    shape: Vec<i64>,
    strides: Vec<i64>,
    data_type: (u8, u8, u16),
    device: (i32, i32),
    versioned: bool,
) -> PyResult<Py<PyAny>> {
    let (code, bits, lanes) = data_type;
    let (kind, number) = device;
    let tensor = |shape: &[i64], strides: &[i64]| DlTensor {
        data: std::ptr::with_exposed_provenance_mut(address),
        device: Device { kind, number },
        dimensions: shape.len() as i32,
        data_type: DataType { code, bits, lanes },
        shape: shape.as_ptr().cast_mut(),
        strides: strides.as_ptr().cast_mut(),
        byte_offset: 0,
    };
    if shape.len() != strides.len() {
        return Err(PyTypeError::new_err(
            "a stride for each dimension is wanted",
        ));
    }
    let tensor = tensor(&shape, &strides);
    let (pointer, name): (*mut c_void, &CStr) = if versioned {
        let exported = Box::into_raw(Box::new(Exported {
            managed: ManagedVersioned {
                major: MAJOR,
                minor: 0,
                context: null_mut(),
                deleter: Some(delete_versioned),
                flags: 0,
                tensor,
            },
            _shape: shape,
            _strides: strides,
            _owner: owner,
        }));
        // SAFETY: the box was leaked above; the vectors have not moved their elements.
        unsafe {
            (*exported).managed.context = exported.cast();
            ((&raw mut (*exported).managed).cast(), VERSIONED)
        }
    } else {
        let exported = Box::into_raw(Box::new(Exported {
            managed: Managed {
                tensor,
                context: null_mut(),
                deleter: Some(delete),
            },
            _shape: shape,
            _strides: strides,
            _owner: owner,
        }));
        // SAFETY: as above.
        unsafe {
            (*exported).managed.context = exported.cast();
            ((&raw mut (*exported).managed).cast(), NAME)
        }
    };
    // SAFETY: a pointer that is not null, a static name, and a destructor for both; the result is a new reference, or null with an error
    // set.
    unsafe {
        let capsule = ffi::PyCapsule_New(pointer, name.as_ptr(), Some(drop_capsule));
        Bound::from_owned_ptr_or_err(py, capsule).map(Bound::unbind)
    }
}
