def test_a_sound_replay_is_reproduced_bit_identical(bench):
    bench.pack().replay()
    report = bench.verify()
    assert (report.verdict, report.exit_status) == ("REPRODUCED, bit-identical", 0)
    assert report.reasons == ()
