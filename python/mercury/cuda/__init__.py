"""Running compiled plans on NVIDIA GPUs: one process a GPU, PyTorch tensors in and out.

Nothing is loaded of CUDA, NCCL or PyTorch before a session is opened.
"""

from .call import Call, Graph
from .launch import DeviceKernel, DeviceLaunch, DeviceTile
from .plan import CudaPlan
from .session import Session

__all__ = ["Call", "CudaPlan", "DeviceKernel", "DeviceLaunch", "DeviceTile", "Graph", "Session"]
