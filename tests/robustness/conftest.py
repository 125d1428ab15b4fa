"""The option `--campaign N`: N times as many attempts as usual."""

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--campaign", type=int, default=1, help="how many times as many attempts to make"
    )


@pytest.fixture
def campaign(request):
    return request.config.getoption("--campaign")
