// The application of the tests. It does not know of the agent. Its argument says how it ends.
using System;
using System.IO;

static class Program {
  static int Main(string[] arguments) {
    Console.WriteLine("arguments: {0}", string.Join(" ", arguments));
    Console.Error.WriteLine("on standard error");
    switch (arguments[0]) {
      case "at-once": return 3;
      case "exit": Environment.Exit(9); break;
      case "throw": throw new InvalidOperationException("nobody catches this");
      case "loop": return Loop(300000000);
      case "thread": Loop(1000000); new System.Threading.Thread(() => Environment.Exit(Loop(1000000))).Start(); break;
      case "obey": return Obey();
    }
    return 0;
  }

  /// Nothing but arithmetic.
  static int Loop(long rounds) {
    var sum = 0L;
    for (var round = 0L; round < rounds; round++) sum = sum * 31 + round;
    Console.WriteLine(sum);
    return 5;
  }

  /// A line is a command. Each is answered, so that whoever gave it knows that it was done.
  static int Obey() {
    for (string line; (line = Console.In.ReadLine()) != null;) {
      var words = line.Split(' ');
      for (var left = int.Parse(words[1]); left > 0; left--) {
        if (words[0] == "throw") try { throw new Exception("caught"); } catch (Exception) {}
        if (words[0] == "collect") { Keep(new byte[1000]); GC.Collect(); }
      }
      Console.WriteLine(line);
    }
    return 7;
  }

  static void Keep(object garbage) => GC.KeepAlive(garbage);
}
