// Work for the measurement of the agent: its argument is how much of each kind, and "idle" how many seconds of none.
using System;
using System.Collections.Generic;
using System.Threading;

static class Work {
  static void Main(string[] arguments) {
    var amount = int.Parse(arguments[1]);
    if (arguments[0] == "idle") Thread.Sleep(1000 * amount);
    else for (var round = 0; round < amount; round++) Round(round);
  }

  static void Round(int round) {
    var words = new Dictionary<string, int>();
    for (var at = 0; at < 20000; at++) words["word " + (round * 31 + at) % 5000] = at;
    try { if (words.Count > 0) throw new InvalidOperationException(); } catch (InvalidOperationException) {}
  }
}
