"""The part of the build that pyproject.toml cannot say: a C++ library beside the package."""

from setuptools import setup

from taeda.utils.cpp_extension import BuildExtension, DeviceLibrary

setup(
    ext_modules=[
        DeviceLibrary("taeda_example_device.library", ["taeda_example_device/device.cpp"])
    ],
    cmdclass={"build_ext": BuildExtension},
)
