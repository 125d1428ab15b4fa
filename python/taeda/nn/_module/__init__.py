"""The parts of Module: calling, hooks, finding, converting and saving."""
