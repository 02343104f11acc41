from tests.agents.test_returns_end_to_end import play_through
from tests.harness import LOST
from tests.oracles.mutate import mutate
import time, pytest
@pytest.mark.timeout(560)
def test_lost(service, real_data, tmp_path):
    service.broker = LOST
    mutate(real_data, tmp_path, seed=77)
    t=time.monotonic(); print(play_through(service, tmp_path, 3)); print(time.monotonic()-t)
