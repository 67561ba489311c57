// Operators of the stand-in device, its CPU fallback, and what Python may ask it.
//
// An operator that MPS has runs on a CPU alias of the same memory: no copy, no trace of
// the CPU. One that MPS lacks goes through at::native::cpu_fallback, as in
// aten/src/ATen/mps/MPSFallback.mm: with the same texts and the same `aten::_to_cpu`.
#include <ATen/EmptyTensor.h>
#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <ATen/native/CPUFallback.h>

#include <set>
#include <unordered_map>

#include "device.h"
#include "hooks.h"

using namespace at;

namespace standin {

C10_REGISTER_GUARD_IMPL(MPS, Guard);

struct Registration {
  Registration() { c10::SetAllocator(DeviceType::MPS, &allocator(), /*priority=*/10); }
} registration;

// ------------------------------------------------------------------ what is supported

struct Support {
  std::set<std::string> missing;
  bool fallback = false;
  // Which of torch's two sentences about float64 is said: the one for a conversion, or
  // the one for a tensor on the device. Where Metal's code says which is not modelled.
  bool says_conversion = false;
  // MPS raises at no index out of range; the CPU kernels underneath do.
  bool silent_indices = false;
  std::map<std::string, int64_t> fell_back;
  std::mutex mutex;
};

Support& support() {
  static auto& instance = *new Support();
  return instance;
}

void require_dtype(ScalarType dtype) {
  bool wide = dtype == ScalarType::Double || dtype == ScalarType::ComplexDouble;
  if (!wide) return;
  const char* name = dtype == ScalarType::Double ? "float64" : "complex128";
  const char* other = dtype == ScalarType::Double ? "float32" : "complex64";
  TORCH_CHECK_TYPE(!support().says_conversion, "Cannot convert a ", name, " Tensor to MPS as the MPS ",
                   "framework doesn't support ", name, ". Please use ", other, " instead.");
  TORCH_CHECK_TYPE(false, "Cannot convert a MPS Tensor to ", name, " dtype as the MPS ",
                   "framework doesn't support ", name, ". Please use ", other, " instead.");
}

bool on_device(const Tensor& tensor) { return tensor.defined() && tensor.device().is_mps(); }

// ------------------------------------------------------------------ memory in two views

// A CPU tensor over the memory of a device tensor.
Tensor host_view(const Tensor& tensor) {
  auto owner = std::make_unique<c10::Storage>(tensor.storage());
  void* data = tensor.storage().mutable_data();
  c10::DataPtr pointer(data, owner.release(),
                       [](void* held) { delete static_cast<c10::Storage*>(held); },
                       Device(DeviceType::CPU));
  c10::Storage storage(c10::Storage::use_byte_size_t{}, tensor.storage().nbytes(),
                       std::move(pointer), c10::GetCPUAllocator(), true);
  auto view = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                    tensor.storage_offset());
  if (tensor.is_conj()) view._set_conj(true);
  if (tensor.is_neg()) view._set_neg(true);
  return view;
}

Tensor new_on_device(IntArrayRef size, IntArrayRef stride, ScalarType dtype) {
  require_dtype(dtype);
  return at::detail::empty_strided_generic(
      size, stride, &allocator(), c10::DispatchKeySet(c10::DispatchKey::MPS), dtype);
}

// A device tensor with the content and strides of a CPU one.
Tensor moved_to_device(const Tensor& host) {
  if (!host.defined()) return host;
  Tensor moved = new_on_device(host.sizes(), host.strides(), host.scalar_type());
  if (host.numel() != 0) host_view(moved).copy_(host);
  return moved;
}

// ------------------------------------------------------------------ indices

// Moves indices out of range to the nearest row. What MPS makes of them is not modelled:
// only that nothing is raised.
Tensor in_range(const Tensor& indices, int64_t size) {
  bool whole = indices.defined() && indices.scalar_type() == ScalarType::Long;
  return whole && indices.numel() != 0 && size > 0 ? indices.clamp(0, size - 1) : indices;
}

// Does so for the lookups that the tests make, after their arguments became host views.
void keep_in_range(const std::string& name, torch::jit::Stack* stack, size_t first) {
  auto at = [&](size_t i) -> c10::IValue& { return (*stack)[first + i]; };
  if (name == "aten::embedding") {
    at(1) = in_range(at(1).toTensor(), at(0).toTensor().size(0));
  } else if (name == "aten::gather" || name == "aten::index_select" ||
             name == "aten::scatter") {
    at(2) = in_range(at(2).toTensor(), at(0).toTensor().size(at(1).toInt()));
  } else if (name == "aten::take") {
    at(1) = in_range(at(1).toTensor(), at(0).toTensor().numel());
  } else if (name == "aten::nll_loss_forward") {
    at(1) = in_range(at(1).toTensor(), at(0).toTensor().size(-1));
  } else if (name == "aten::index") {
    c10::List<std::optional<Tensor>> kept;
    int64_t dimension = 0;
    for (std::optional<Tensor> one : at(1).toOptionalTensorList()) {
      auto size = at(0).toTensor().size(dimension++);
      kept.push_back(one ? std::optional<Tensor>(in_range(*one, size)) : std::nullopt);
    }
    at(1) = kept;
  }
}

// ------------------------------------------------------------------ any operator

// Runs one operator on host views of its device arguments, and maps results back.
class HostRun {
 public:
  HostRun(const c10::OperatorHandle& op, torch::jit::Stack* stack)
      : op_(op), stack_(stack), first_(stack->size() - op.schema().arguments().size()) {}

  void run() {
    for (size_t i = 0; i < op_.schema().arguments().size(); i++) give(i);
    if (support().silent_indices) keep_in_range(op_.operator_name().name, stack_, first_);
    op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack_);
    for (auto& [device_tensor, host] : written_) write_back(device_tensor, host);
    size_t results = op_.schema().returns().size();
    for (size_t i = stack_->size() - results; i < stack_->size(); i++) take(i);
  }

 private:
  void give(size_t i) {
    auto& value = (*stack_)[first_ + i];
    const auto& argument = op_.schema().arguments()[i];
    bool written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    if (value.isTensor()) {
      value = viewed(value.toTensor(), written);
    } else if (value.isTensorList()) {
      std::vector<Tensor> views;
      for (const Tensor& one : value.toTensorList()) views.push_back(viewed(one, written));
      value = c10::List<Tensor>(views);
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<Tensor>> views;
      for (std::optional<Tensor> one : value.toOptionalTensorList()) {
        views.push_back(one ? std::optional<Tensor>(viewed(*one, written)) : std::nullopt);
      }
      value = views;
    } else if (value.isDevice()) {
      value = Device(DeviceType::CPU);
    } else if (argument.name() == "generator") {
      if (value.isNone()) value = cpu_generator(default_generator());
      else if (value.toGenerator().device().is_mps()) value = cpu_generator(value.toGenerator());
    } else if (argument.name() == "dtype" && value.isInt()) {
      require_dtype(static_cast<ScalarType>(value.toInt()));
    }
  }

  Tensor viewed(const Tensor& tensor, bool written) {
    if (!on_device(tensor)) return tensor;
    Tensor view = host_view(tensor);
    if (written) written_.emplace_back(tensor, view);
    owners_[view.unsafeGetTensorImpl()] = tensor;
    // Kept alive: the address must not come to mean a result.
    views_.push_back(view);
    return view;
  }

  // An out= argument that was resized lies in other memory now.
  static void write_back(const Tensor& device_tensor, const Tensor& host) {
    if (host.storage().data() == device_tensor.storage().data() &&
        host.sizes() == device_tensor.sizes()) return;
    Tensor fresh = moved_to_device(host.contiguous());
    auto* impl = device_tensor.unsafeGetTensorImpl();
    impl->set_storage_keep_dtype(fresh.storage());
    impl->set_sizes_and_strides(fresh.sizes(), fresh.strides(), 0);
  }

  void take(size_t i) {
    auto& value = (*stack_)[i];
    if (value.isTensor()) {
      value = returned(value.toTensor());
    } else if (value.isTensorList()) {
      std::vector<Tensor> tensors;
      for (const Tensor& one : value.toTensorList()) tensors.push_back(returned(one));
      value = c10::List<Tensor>(tensors);
    }
  }

  Tensor returned(const Tensor& host) {
    if (!host.defined() || !host.device().is_cpu()) return host;
    auto same = owners_.find(host.unsafeGetTensorImpl());
    if (same != owners_.end()) return same->second;
    for (auto& [impl, owner] : owners_) {
      bool shares = host.has_storage() && host.storage().data() != nullptr &&
                    host.storage().data() == owner.storage().data();
      if (!shares) continue;
      auto view = at::detail::make_tensor<c10::TensorImpl>(
          c10::TensorImpl::VIEW, c10::Storage(owner.storage()), owner.key_set(), host.dtype());
      view.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides(),
                                                        host.storage_offset());
      return view;
    }
    return moved_to_device(host);
  }

  const c10::OperatorHandle& op_;
  torch::jit::Stack* stack_;
  size_t first_;
  std::vector<std::pair<Tensor, Tensor>> written_;
  std::unordered_map<c10::TensorImpl*, Tensor> owners_;
  std::vector<Tensor> views_;
};

std::string full_name(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name();
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

// mps_fallback of MPSFallback.mm: warn once in a process, then go to the CPU.
void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  TORCH_WARN_ONCE("The operator '", full_name(op),
                  "' is not currently supported on the MPS backend and will fall back to "
                  "run on the CPU. This may have performance implications.");
  {
    std::lock_guard<std::mutex> guard(support().mutex);
    support().fell_back[full_name(op)]++;
  }
  at::native::cpu_fallback(op, stack);
}

void any_operator(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (support().missing.count(full_name(op)) == 0) {
    device_clock().enqueue();
    HostRun(op, stack).run();
    return;
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      support().fallback, "The operator '", full_name(op),
      "' is not currently implemented for the MPS device. If you want this op to be "
      "considered for addition please comment on "
      "https://github.com/pytorch/pytorch/issues/141287 and mention use-case, that "
      "resulted in missing op as well as commit hash 0. As a temporary fix, you can set "
      "the environment variable `PYTORCH_ENABLE_MPS_FALLBACK=1` to use the CPU as a "
      "fallback for this op. WARNING: this will be slower than running natively on MPS.");
  fall_back(op, stack);
}

// ------------------------------------------------------------------ native operators

Tensor empty_memory_format(IntArrayRef size, std::optional<ScalarType> dtype,
                           std::optional<Layout>, std::optional<Device>,
                           std::optional<bool>, std::optional<MemoryFormat> format) {
  auto type = dtype.value_or(typeMetaToScalarType(at::get_default_dtype()));
  require_dtype(type);
  return at::detail::empty_generic(size, &allocator(),
                                   c10::DispatchKeySet(c10::DispatchKey::MPS), type, format);
}

Tensor empty_strided(IntArrayRef size, IntArrayRef stride, std::optional<ScalarType> dtype,
                     std::optional<Layout>, std::optional<Device>, std::optional<bool>) {
  auto type = dtype.value_or(typeMetaToScalarType(at::get_default_dtype()));
  return new_on_device(size, stride, type);
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool) {
  bool reads = on_device(from), writes = on_device(to);
  // A blocking copy to the host waits for the device: copy_and_sync in Copy.mm.
  if (reads && !writes) device_clock().wait();
  else device_clock().enqueue();
  (writes ? host_view(to) : to).copy_(reads ? host_view(from) : from);
  return to;
}

Tensor& copy_(Tensor& self, const Tensor& from, bool non_blocking) {
  copy_from(from.sizes() == self.sizes() ? from : from.expand_as(self), self, non_blocking);
  return self;
}

Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  return copy_from(from, to, false);
}

Scalar local_scalar_dense(const Tensor& tensor) {
  device_clock().wait();
  return host_view(tensor).item();
}

Tensor strided_view(const Tensor& self, IntArrayRef size, IntArrayRef stride,
                  std::optional<int64_t> offset) {
  auto view = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(self.storage()), self.key_set(), self.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(
      size, stride, offset.value_or(self.storage_offset()));
  return view;
}

Tensor view(const Tensor& self, IntArrayRef size) {
  auto wanted = at::infer_size_dv(size, self.numel());
  auto stride = at::detail::computeStride(self.sizes(), self.strides(), wanted);
  TORCH_CHECK(stride.has_value(), "view size is not compatible with input tensor's size "
              "and stride. Use .reshape(...) instead.");
  return strided_view(self, wanted, *stride, self.storage_offset());
}

Tensor reshape_alias(const Tensor& self, IntArrayRef size, IntArrayRef stride) {
  return strided_view(self, size, stride, self.storage_offset());
}

Tensor unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  if (self.dim() == 0) return strided_view(self, {size}, {1}, self.storage_offset());
  auto dim = at::maybe_wrap_dim(dimension, self.dim(), true);
  auto sizes = self.sizes().vec(), strides = self.strides().vec();
  sizes[dim] = (self.size(dim) - size) / step + 1;
  strides[dim] = step * self.stride(dim);
  sizes.push_back(size);
  strides.push_back(self.stride(dim));
  return strided_view(self, sizes, strides, self.storage_offset());
}

const Tensor& resize_(const Tensor& self, IntArrayRef size, std::optional<MemoryFormat>) {
  auto& storage = self.storage();
  size_t need = (c10::multiply_integers(size) + self.storage_offset()) * self.element_size();
  if (need > storage.nbytes()) {
    auto memory = allocator().allocate(need);
    if (storage.nbytes() != 0) std::memcpy(memory.get(), storage.data(), storage.nbytes());
    storage.set_data_ptr_noswap(std::move(memory));
    storage.unsafeGetStorageImpl()->set_nbytes(need);
  }
  self.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  return self;
}

Tensor& set_storage(Tensor& self, Storage from, int64_t offset, IntArrayRef size,
                    IntArrayRef stride) {
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(from));
  if (stride.size() == size.size()) {
    impl->set_sizes_and_strides(size, stride, offset);
  } else {
    impl->set_sizes_contiguous(size);
    impl->set_storage_offset(offset);
  }
  return self;
}

Tensor& set_tensor(Tensor& self, const Tensor& from) {
  return set_storage(self, from.storage(), from.storage_offset(), from.sizes(), from.strides());
}

Tensor& set_whole_storage(Tensor& self, Storage from) {
  int64_t count = from.nbytes() / self.element_size();
  return set_storage(self, std::move(from), 0, {count}, {});
}

Tensor& set_empty(Tensor& self) {
  return set_tensor(self, new_on_device({0}, {1}, self.scalar_type()));
}

std::optional<Tensor> optional_host_view(const std::optional<Tensor>& tensor) {
  if (!tensor.has_value() || !tensor->defined()) return std::nullopt;
  return host_view(*tensor);
}

Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                   IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                   bool transposed, IntArrayRef output_padding, int64_t groups) {
  device_clock().enqueue();
  return moved_to_device(at::convolution(host_view(input), host_view(weight),
                                         optional_host_view(bias), stride, padding, dilation,
                                         transposed, output_padding, groups));
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(
    const Tensor& gradient, const Tensor& input, const Tensor& weight, IntArrayRef stride,
    IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
    int64_t groups, std::array<bool, 3> mask) {
  device_clock().enqueue();
  std::vector<int64_t> bias{transposed ? weight.size(1) * groups : weight.size(0)};
  auto bias_size = mask[2] ? at::OptionalIntArrayRef(bias) : at::OptionalIntArrayRef();
  auto [a, b, c] = at::convolution_backward(
      host_view(gradient), host_view(input), host_view(weight), bias_size, stride, padding,
      dilation, transposed, output_padding, groups, mask);
  return {moved_to_device(a), moved_to_device(b), moved_to_device(c)};
}

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value,
                 const std::optional<Tensor>& mask, double dropout, bool causal,
                 std::optional<double> scale, bool grouped) {
  return std::get<0>(at::_scaled_dot_product_attention_math(
      query, key, value, mask, dropout, causal, std::nullopt, scale, grouped));
}

TORCH_LIBRARY_IMPL(_, MPS, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&any_operator>());
}

TORCH_LIBRARY_IMPL(aten, AutogradMPS, m) {
  m.impl("scaled_dot_product_attention", TORCH_FN(attention));
}

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("empty.memory_format", TORCH_FN(empty_memory_format));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("copy_", TORCH_FN(copy_));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
  m.impl("as_strided", TORCH_FN(strided_view));
  m.impl("view", TORCH_FN(view));
  m.impl("_reshape_alias", TORCH_FN(reshape_alias));
  m.impl("unfold", TORCH_FN(unfold));
  m.impl("resize_", TORCH_FN(resize_));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  m.impl("set_.source_Storage", TORCH_FN(set_whole_storage));
  m.impl("set_.source_Tensor", TORCH_FN(set_tensor));
  m.impl("set_", TORCH_FN(set_empty));
  m.impl("convolution_overrideable", TORCH_FN(convolution));
  m.impl("convolution_backward_overrideable", TORCH_FN(convolution_backward));
  m.impl("scaled_dot_product_attention", TORCH_FN(attention));
  // These go to the CPU whatever the environment variable says, as in torch 2.8 to 2.13.
  for (const char* name : {"embedding_renorm_", "linalg_svd", "linalg_svd.U"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&fall_back>());
  }
}

}  // namespace standin

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  using namespace standin;
  m.def("set_ns_per_op", [](int64_t ns) { device_clock().set_ns_per_op(ns); });
  m.def("set_recommended_bytes", [](size_t bytes) { memory().recommended = bytes; });
  m.def("set_missing", [](std::set<std::string> names, bool fallback) {
    support().missing = std::move(names);
    support().fallback = fallback;
  });
  m.def("set_silent_indices", [](bool silent) { support().silent_indices = silent; });
  m.def("say_conversion", [](bool says) { support().says_conversion = says; });
  m.def("truth", [] {
    py::dict truth;
    truth["fell_back"] = support().fell_back;
    truth["peak_bytes"] = memory().peak;
    truth["current_bytes"] = memory().current;
    truth["synchronizations"] = synchronizations();
    return truth;
  });
}
