# A small convolutional network looks at eight pictures a second for six seconds, with two threads (ONNX Runtime; the weights are
# drawn by chance, which costs the same).
# needs: python3-venv
python3 -m venv environment
environment/bin/pip install --quiet onnxruntime==1.23.2 onnx==1.19.1 numpy
cat >model.py <<'PYTHON'
import numpy, onnx
from onnx import TensorProto, helper, numpy_helper
random = numpy.random.default_rng(1)
nodes, weights, name, channels = [], [], "picture", 3
for layer, out in enumerate([16, 32, 64, 64]):
    weights.append(numpy_helper.from_array(random.standard_normal((out, channels, 3, 3)).astype("float32") / 10, f"w{layer}"))
    nodes.append(helper.make_node("Conv", [name, f"w{layer}"], [f"c{layer}"], pads=[1] * 4, strides=[2 if layer else 1] * 2))
    nodes.append(helper.make_node("Relu", [f"c{layer}"], [f"r{layer}"]))
    name, channels = f"r{layer}", out
nodes.append(helper.make_node("GlobalAveragePool", [name], ["scores"]))
shape = lambda name, dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
graph = helper.make_graph(nodes, "vision", [shape("picture", [1, 3, 224, 224])], [shape("scores", None)], weights)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), "model.onnx")
PYTHON
cat >look.py <<'PYTHON'
import time, numpy, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 2
options.add_session_config_entry("session.intra_op.allow_spinning", "0")
session = onnxruntime.InferenceSession("model.onnx", options)
picture = numpy.random.default_rng(2).standard_normal((1, 3, 224, 224)).astype("float32")
begun = time.monotonic()
for n in range(48):
    session.run(None, {"picture": picture})
    time.sleep(max(0, begun + (n + 1) / 8 - time.monotonic()))
PYTHON
environment/bin/python model.py
record -- environment/bin/python look.py
