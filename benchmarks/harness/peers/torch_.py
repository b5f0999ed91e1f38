"""PyTorch: as it runs ops one by one, and through its compiler."""

import numpy as np

from ..suite import EPSILON
from . import Bound, Peer, Prepared, repeat


def formulas(torch, case):
    """(inputs' names, function of them -> results, what it is called)."""
    functional, extent = torch.nn.functional, (case.extent,)
    if case.family == "layer_norm_backward":
        def gradient(dy, x, mean, rstd, scale, shift):
            return torch.ops.aten.native_layer_norm_backward(
                dy, x, extent, mean, rstd, scale, shift, [True, True, True])
        # Beside statistics in f32 its kernel wants parameters in f32.
        return ("dy", "x", "mean", "rstd", "scale_f32", "shift_f32"), gradient, \
            "native_layer_norm_backward"
    if case.family == "rms_norm_backward":
        def gradient(dy, x, rstd, scale):
            dtype = x.dtype
            dy, x, scale = dy.float(), x.float(), scale.float()
            normalized = x * rstd
            scaled = dy * scale
            mean = (scaled * normalized).mean(-1, keepdim=True)
            dx = rstd * (scaled - normalized * mean)
            return dx.to(dtype), (dy * normalized).sum(0).to(dtype)
        return ("dy", "x", "rstd", "scale"), gradient, "formula (no kernel for CPUs)"
    centred = case.is_centred
    names = ("x", "residual") if case.has_residual else ("x",)
    names = (*names, "scale", "shift") if centred else (*names, "scale")
    impl = "layer_norm" if centred else "rms_norm"

    def norm(x, *parameters):
        if centred:
            return functional.layer_norm(x, extent, *parameters, EPSILON)
        return functional.rms_norm(x, extent, *parameters, EPSILON)

    def forward(x, *parameters):
        if not case.has_residual:
            return (norm(x, *parameters),)
        total = x + parameters[0]
        return norm(total, *parameters[1:]), total
    return names, forward, f"add, {impl}" if case.has_residual else impl


def channel_formulas(torch, case):
    """The same for norms of images, [samples, channels, *space]."""
    aten, functional = torch.ops.aten, torch.nn.functional
    if case.family == "bn_train_backward":
        def gradient(dy, x, mean, rstd, scale):
            return aten.native_batch_norm_backward(
                dy, x, scale, None, None, mean, rstd, True, EPSILON, [True, True, True])
        return ("dy", "x", "mean", "rstd", "scale"), gradient, "native_batch_norm_backward"
    if case.family == "bn_train":
        def forward(x, scale, shift):
            return aten.native_batch_norm(x, scale, shift, None, None, True, 0.1, EPSILON)[:1]
        return ("x", "scale", "shift"), forward, "native_batch_norm"
    if case.family == "bn_inference":
        def forward(x, mean, variance, scale, shift):
            return (functional.batch_norm(x, mean, variance, scale, shift, False, 0.0, EPSILON),)
        return ("x", "mean", "variance", "scale", "shift"), forward, "batch_norm"
    if case.family == "gn":
        def forward(x, scale, shift):
            return (functional.group_norm(x, case.groups, scale, shift, EPSILON),)
        return ("x", "scale", "shift"), forward, "group_norm"

    def forward(x, scale, shift):
        return (functional.instance_norm(x, weight=scale, bias=shift, eps=EPSILON),)
    return ("x", "scale", "shift"), forward, "instance_norm"


class Eager(Peer):
    name = "torch"

    def __init__(self, threads, native):
        super().__init__(threads, native)
        import torch
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.torch, self.version = torch, torch.__version__

    def tensor(self, name, array, is_channels):
        torch = self.torch
        if array.dtype.name == "bfloat16":
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        tensor = torch.from_numpy(array)
        # Of rows; of images there is one a channel.
        is_row = name in ("mean", "rstd") and not is_channels
        return tensor.view(-1, 1) if is_row else tensor

    def array(self, tensor, like):
        tensor = tensor.contiguous()
        if tensor.dtype == self.torch.bfloat16:
            return tensor.view(self.torch.int16).numpy().view(like.dtype)
        return tensor.numpy()

    def compiled(self, function):
        return function

    def prepare(self, case, buffers):
        return self.planned(*formulas(self.torch, case))

    def prepare_channels(self, case, buffers):
        return self.planned(*channel_formulas(self.torch, case), is_last=case.layout == "nhwc")

    def planned(self, names, function, impl, is_last=False):
        """is_last: images lie with their channels last, which PyTorch has as strides."""
        function = self.compiled(function)
        # One place for the results of all buffers: memory is used again at once.
        kept = [None]

        def bind(target):
            tensors = [self.tensor(name, target[name], target.case.is_channels)
                       for name in names]
            if is_last:
                tensors = [t.movedim(-1, 1) if t.ndim > 2 else t for t in tensors]

            def call():
                kept[0] = None
                kept[0] = function(*tensors)

            def results():
                values = [v.movedim(1, -1) if is_last and v.ndim > 2 else v for v in kept[0]]
                return {name: self.array(value, array) for (name, array), value
                        in zip(target.results().items(), values, strict=False)}
            return Bound(repeat(call), results)
        return Prepared(bind, self.describe(impl), "allocates its results")

    def describe(self, impl):
        return impl


class Compiled(Eager):
    name = "torch.compile"

    def __init__(self, threads, native):
        super().__init__(threads, native)
        import torch._inductor.config as config
        config.cpp.threads = threads

    def compiled(self, function):
        self.torch._dynamo.reset()
        return self.torch.compile(function, dynamic=False)

    def describe(self, impl):
        return "Inductor, C++"

    def forget(self):
        self.torch._dynamo.reset()
