"""Tests that say nothing about a device beside the CPU, by reason: files, or tests of them."""

from __future__ import annotations

LEFT_OUT: dict[str, list[str]] = {
    "measures the CPU's memory, or counts calls without those that move tensors here": [
        "tests/test_function_modes.py::test_every_call_is_seen",
        "tests/test_profiler.py::test_memory",
        "tests/utils/test_checkpoint.py::test_memory_is_given_back",
    ],
    "so many small operations that opening the memory for each takes minutes": [
        "tests/autograd/test_memory.py::test_a_million_operations_in_a_row",
        "tests/nn/test_sampling.py::test_grid_sample",
        "tests/ops/test_lobpcg.py::test_derivatives",
    ],
    "an error inside of a kernel comes later, when somebody waits": [
        "tests/ops/test_layout_paths.py::test_whole_division",
        "tests/ops/test_pointwise.py::test_integers_wrap_and_divide",
    ],
    "states of random generators are the CPU's": [
        "tests/ops/test_random.py::test_bad_states_are_refused",
        "tests/ops/test_random.py::test_state_travels_between_libraries",
        "tests/test_dtype_device.py::test_generators",
    ],
    "computes with NumPy in place, or registers what is for the CPU alone": [
        "tests/test_library.py::TestLibrary::test_autograd_key",
        "tests/test_library.py::TestLibrary::test_define_and_impl",
        "tests/test_library.py::TestLibrary::test_functions_instead_of_methods",
        "tests/test_library.py::test_changing_arguments_in_place",
        "tests/test_library.py::test_kernels_by_device",
    ],
    "compiles code for the CPU, which reads and writes the memory itself": [
        "tests/utils/test_cpp_extension.py",
    ],
    "calls Tensor(...), which the default device does not concern": [
        "tests/test_subclasses.py::test_results_are_of_the_subclass",
    ],
    "expects a representation that names no device": [
        "tests/autograd/test_forward_ad.py::test_repr",
        "tests/functional/test_parameters.py::test_examples",
        "tests/insight/test_docstrings.py::test_preview_of_an_optimizer",
        "tests/nested/test_nested.py::test_making",
        "tests/nn/test_containers.py::test_parameter_list",
        "tests/nn/test_parameter.py::test_parameter",
        "tests/test_door_python.py::test_named_results",
        "tests/test_printing.py::test_a_summary_reads_only_what_it_shows",
        "tests/test_printing.py::test_default_dtype_goes_without_saying",
        "tests/test_printing.py::test_large_tensors_are_summarised",
        "tests/test_printing.py::test_options_are_set_and_restored",
        "tests/test_printing.py::test_repr_and_str_are_the_same_text",
        "tests/test_printing.py::test_same_text_as_pytorch",
        "tests/test_printing.py::test_suffixes",
        "tests/test_printing.py::test_values",
        "tests/test_tensor.py::test_format",
    ],
    "names the CPU, or expects that going there copies nothing": [
        "tests/distributions/test_for_packages.py::test_helpers",
        "tests/nn/test_meta.py::test_from_meta_to_memory",
        "tests/nn/test_meta.py::test_reset_after_to_empty",
        "tests/nn/test_packed.py::test_packed_sequence_object",
        "tests/ops/test_creation.py::test_to",
        "tests/test_serialization.py::test_map_location",
        "tests/test_tensor.py::test_dtype_conversions",
        "tests/test_tensor.py::test_plain_attributes",
    ],
    "loads a file of safetensors, which names no device": [
        "tests/functional/test_parameters.py::test_files",
        "tests/functional/test_same_numbers.py::test_going_on_from_saved_states",
        "tests/test_stored_dtypes.py::test_files",
    ],
    "reads, maps or shares the bytes of a storage": [
        "tests/nn/test_module.py::test_share_memory",
        "tests/test_file_formats.py::test_mapping_reads_nothing_and_shares_pages",
        "tests/test_serialization.py::test_storages",
        "tests/test_serialization.py::test_storages_with_a_dtype",
        "tests/test_serialization.py::test_storages_with_a_dtype_pass_to_and_from_pytorch",
        "tests/test_storage.py::test_share_memory",
        "tests/test_storage.py::test_share_memory_of_modules_and_borrowed_memory",
        "tests/test_stored_dtypes.py::test_arrays",
        "tests/test_tensor.py::test_untyped_storage",
    ],
    "PyTorch does not know the device that a file names": [
        "tests/nested/test_nested_autograd.py::test_files_of_pytorch",
        "tests/sparse/test_sparse.py::test_copies_and_files",
        "tests/test_file_exchange.py::test_objects_pass_both_ways",
        "tests/test_serialization.py::test_pytorch_reads_our_files",
        "tests/test_stored_dtypes.py::test_files_are_pytorchs",
    ],
    "sends tensors of the device between processes, or starts one that has not registered it": [
        "tests/data/test_workers.py::test_batches_of_any_kind_arrive",
        "tests/data/test_workers.py::test_nothing_is_left_behind",
        "tests/data/test_workers.py::test_other_ways_to_start",
    ],
}


# And where most operations run on the CPU instead.
LEFT_OUT_OF_FEW: dict[str, list[str]] = {
    "tensors that share memory do so no more in their copies on the CPU": [
        "tests/ops/test_out_memory.py::test_what_reaches_an_input_after_resizing_is_refused",
    ],
    "the CPU's copy of a strided tensor is contiguous, which normal_ fills in another order": [
        "tests/ops/test_random.py::test_layouts_are_filled_in_memory_order",
        "tests/ops/test_random.py::test_normal_numbers_come_in_pairs",
    ],
}

LEFT_OUT_OF_CUDA: dict[str, list[str]] = {
    "dropout draws on the device, whose numbers tests/cuda/test_random.py knows": [
        *(
            f"tests/nn/test_layers.py::test_forward_and_backward[{module}-True]"
            for module in (
                "Dropout(0.3)",
                "Dropout1d()",
                "Dropout2d(0.4)",
                "Dropout3d(0.4)",
                "AlphaDropout(0.4)",
                "FeatureAlphaDropout(0.4)",
                "MultiheadAttention(6, 2, dropout=0.5)",
            )
        ),
        *(
            f"tests/nn/test_functional.py::test_like_torch[{name}]"
            for name in ("alpha_dropout0", "dropout0", "dropout3d", "feature_alpha_dropout")
        ),
        "tests/nn/test_functional.py::test_dropout_takes_a_generator",
        "tests/nn/test_functional.py::test_inplace_dropout",
        *(
            f"tests/nn/test_packed.py::test_packed_layers[{ordered}-{layer}]"
            for ordered in (False, True)
            for layer in ("GRU-kwargs2", "LSTM-kwargs3")
        ),
        "tests/nn/test_sequences.py::test_dropout_between_layers",
        "tests/nn/test_sequences.py::test_training_with_dropout_draws_the_same_numbers",
        "tests/ops/test_random.py::test_dropout",
    ],
    "draws within an operation, on the device": [
        *(
            f"tests/nn/test_init.py::test_like_torch[trunc_normal_-shape{i}-args{i}-kwargs{i}]"
            for i in range(4, 9)
        ),
        "tests/ops/test_gamma.py::test_draws_are_pytorchs",
    ],
    "autocast of the CPU does not concern the device": [
        "tests/autograd/test_forward_ad.py::test_modes",
        "tests/nn/test_packed.py::test_under_autocast",
    ],
    "the signs of singular vectors are LAPACK's": [
        "tests/ops/test_linalg_small.py::test_singular_vectors_have_pytorchs_signs",
    ],
    "an index out of range is an error of whoever waits next": [
        "tests/nn/test_layers.py::test_embedding_bag_of_one_size",
        "tests/ops/test_cross_entropy.py::test_errors",
    ],
    "asks for a device that no machine has": [
        "tests/ops/test_creation.py::test_requires_grad_and_device"
    ],
}


def reason_for(nodeid: str, few_tables: bool = False, cuda: bool = False) -> str | None:
    """Why the test is left out, or None."""
    place = nodeid.partition("[")[0]
    out = LEFT_OUT | (LEFT_OUT_OF_FEW if few_tables else {}) | (LEFT_OUT_OF_CUDA if cuda else {})
    for reason, names in out.items():
        if any(name in (nodeid, place) or place.startswith(f"{name}::") for name in names):
            return reason
    return None
