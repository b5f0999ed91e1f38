"""ONNX Runtime: inference only."""

import numpy as np

from ..suite import EPSILON
from . import Bound, Peer, Prepared, Unsupported, repeat

MICROSOFT = "com.microsoft"
# Family -> op, its inputs and outputs, its domain.
OPS = {
    "layer_norm": ("LayerNormalization", ("x", "scale", "shift"), ("y",), ""),
    "rms_norm": ("RMSNormalization", ("x", "scale"), ("y",), ""),
    "qk_norm": ("RMSNormalization", ("x", "scale"), ("y",), ""),
    "add_layer_norm": ("SkipLayerNormalization", ("x", "residual", "scale", "shift"),
                       ("y", "", "", "sum"), MICROSOFT),
    "add_rms_norm": ("SkipSimplifiedLayerNormalization", ("x", "residual", "scale"),
                     ("y", "", "", "sum"), MICROSOFT),
}
OPSET, MICROSOFT_OPSET, IR_VERSION = 23, 1, 10


class OnnxRuntime(Peer):
    name = "onnxruntime"

    def __init__(self, threads, native):
        super().__init__(threads, native)
        import onnx
        import onnxruntime
        onnxruntime.set_default_logger_severity(4)
        self.onnx, self.runtime = onnx, onnxruntime
        self.version = onnxruntime.__version__

    def model(self, case, buffers):
        helper, to_tensor = self.onnx.helper, self.onnx.numpy_helper.from_array
        element = helper.np_dtype_to_tensor_dtype(buffers["x"].dtype)
        op, inputs, outputs, domain = OPS[case.family]

        def value(name):
            return helper.make_tensor_value_info(name, element, list(case.shape))
        axis = {} if domain else {"axis": -1}
        node = helper.make_node(op, inputs, outputs, domain=domain, epsilon=EPSILON, **axis)
        weights = [to_tensor(np.array(buffers[name]), name) for name in inputs
                   if name in ("scale", "shift")]
        graph = helper.make_graph(
            [node], "norm", [value(name) for name in inputs if name in ("x", "residual")],
            [value(name) for name in outputs if name], weights)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, MICROSOFT_OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)

    def prepare(self, case, buffers):
        if case.is_backward:
            raise Unsupported("no gradients")
        if case.packed:
            raise Unsupported("no strided inputs")
        if case.element == "bf16":
            raise Unsupported("no bf16 kernels for CPUs")
        options = self.runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.log_severity_level = 4
        session = self.runtime.InferenceSession(
            self.model(case, buffers).SerializeToString(), options,
            providers=["CPUExecutionProvider"])
        op, inputs, outputs, _ = OPS[case.family]

        def bind(target):
            binding = session.io_binding()
            for names, add in ((inputs, binding.bind_input), (outputs, binding.bind_output)):
                for name in names:
                    if name in ("x", "residual", "y", "sum"):
                        array = target[name]
                        add(name, "cpu", 0, array.dtype.type, list(array.shape),
                            array.ctypes.data)
            return Bound(repeat(lambda: session.run_with_iobinding(binding)), target.results)
        return Prepared(bind, op)
