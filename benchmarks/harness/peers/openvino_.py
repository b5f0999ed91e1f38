"""OpenVINO: inference only."""

import numpy as np

from ..suite import EPSILON
from . import Bound, Peer, Prepared, Unsupported, repeat


class OpenVINO(Peer):
    name = "openvino"

    def __init__(self, threads, native):
        super().__init__(threads, native)
        import openvino
        import openvino.opset15 as ops
        self.openvino, self.ops, self.core = openvino, ops, openvino.Core()
        self.version = openvino.__version__

    def model(self, case, buffers):
        """The subgraphs that its own transformations look for."""
        ops, narrow = self.ops, case.element != "f32"
        element = getattr(self.openvino.Type, case.element)
        inputs = [ops.parameter(list(case.shape), element, name=name)
                  for name in ("x", "residual")[:1 + case.has_residual]]
        total = ops.add(*inputs) if case.has_residual else inputs[0]
        value = ops.convert(total, "f32") if narrow else total
        scale = ops.constant(np.array(buffers["scale_f32"]))
        last = np.array([-1], np.int64)
        if case.is_centred:
            normalized = ops.mvn(value, last, True, EPSILON, "INSIDE_SQRT")
            y = ops.add(ops.multiply(normalized, scale),
                        ops.constant(np.array(buffers["shift_f32"])))
        else:
            square = ops.reduce_mean(ops.power(value, np.float32(2)), last, keep_dims=True)
            root = ops.sqrt(ops.add(square, np.float32(EPSILON)))
            y = ops.multiply(scale, ops.multiply(value, ops.divide(np.float32(1), root)))
        y = ops.convert(y, element) if narrow else y
        outputs = [y, total] if case.has_residual else [y]
        return self.openvino.Model(outputs, inputs, "norm")

    def prepare(self, case, buffers):
        if case.is_backward:
            raise Unsupported("no gradients")
        if case.packed:
            raise Unsupported("no strided inputs")
        compiled = self.core.compile_model(self.model(case, buffers), "CPU", {
            "INFERENCE_NUM_THREADS": self.threads, "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY", "ENABLE_CPU_PINNING": False,
            "INFERENCE_PRECISION_HINT": case.element})

        def tensor(array):
            if case.element == "f32":
                return self.openvino.Tensor(array, shared_memory=True)
            return self.openvino.Tensor(array.reshape(-1).view(np.uint16),
                                        self.openvino.Shape(list(case.shape)),
                                        getattr(self.openvino.Type, case.element))

        def bind(target):
            request, kept = compiled.create_infer_request(), []
            for index, name in enumerate(("x", "residual")[:1 + case.has_residual]):
                kept.append(tensor(target[name]))
                request.set_input_tensor(index, kept[-1])
            for index, array in enumerate(target.results().values()):
                kept.append(tensor(array))
                request.set_output_tensor(index, kept[-1])

            def call(_kept=kept):
                request.start_async()
                request.wait()
            return Bound(repeat(call), target.results)
        return Prepared(bind, self.layers(compiled))

    @staticmethod
    def layers(compiled):
        """The kernels that the plugin chose."""
        names = []
        for node in compiled.get_runtime_model().get_ordered_ops():
            info = node.get_rt_info()
            kind = info["layerType"].astype(str) if "layerType" in info else ""
            if kind not in ("", "Input", "Output", "Const", "Parameter", "Result"):
                names.append(kind)
        return ", ".join(names)
