compile_error!("soon");
