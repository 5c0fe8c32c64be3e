// Mono runs this before the Main of the application. The process is not ours: the agent must not throw, keep the process
// alive or write to its output; only an invalid option is reported on standard error, before the application starts.
using System;
using System.Collections.Generic;
using System.Threading;

static class Agent {
  const int FirstPause = 1000;
  const int LongestPause = 30000;

  static void Main(string[] arguments) {
    try {
      var options = Options.Parse(arguments.Length == 0 ? "" : arguments[0]);
      // The counters are listed here and not on the thread below: see RuntimeCounter.All.
      var counters = RuntimeCounter.All();
      new Thread(() => Begin(options, counters)) { IsBackground = true, Name = "CinnabarAgent" }.Start();
    } catch (FormatException error) {
      Console.Error.WriteLine("CinnabarAgent: {0}. The application runs without it.", error.Message);
    } catch (Exception) {
      // A Mono that does not export its counters: the application runs without the agent.
    }
  }

  static void Begin(Options options, List<Counter> counters) {
    try {
      Report(options, new Catalogue(counters));
    } catch (Exception) {
      // An exception that left this thread would end the application.
    }
  }

  /// Connects to the inspector again and again until it says good-bye.
  static void Report(Options options, Catalogue catalogue) {
    var random = new Random();
    for (var pause = FirstPause;; pause = Math.Min(2 * pause, LongestPause)) {
      var since = Environment.TickCount;
      using (var connection = Connection.Open(options.Host, options.Port)) {
        if (connection != null && new Session(connection, catalogue, options).Run()) return;
      }
      if (unchecked(Environment.TickCount - since) > LongestPause) pause = FirstPause;
      // Up to a quarter more, so that the agents of many applications do not all reconnect at the same moment.
      Thread.Sleep(pause + random.Next(pause / 4));
    }
  }
}
