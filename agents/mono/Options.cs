// The options after the colon of --agent=CinnabarAgent.exe:host=…,port=…,interval=…,counters=…
using System;
using System.Globalization;

sealed class Options {
  const string All = "all";

  /// The counters sent without a request; the inspector can list and add all others.
  static readonly string[] Usual = {
    "Mono GC/Minor GC collections", "Mono GC/Major GC collections", "Mono GC/Minor GC time", "Mono GC/Major GC time",
    "Mono GC/Managed heap", "Mono JIT/Compiled methods", "Mono JIT/Total time spent JITting",
    "Mono System/User Time", "Mono System/System Time", "Mono System/Working Set", "Mono System/Private Bytes",
    "Mono System/Page Faults", "Mono Thread/Threads", "Mono Thread/Lock contentions", "Mono ThreadPool/Threads",
    "Exceptions/Thrown",
  };

  public string Host { get; private set; } = "127.0.0.1";
  public int Port { get; private set; } = 8888;
  /// Milliseconds between two samples.
  public int Interval { get; private set; } = 1000;
  /// Null for all.
  string[] counters = Usual;

  /// Whether this counter is sent without a request.
  public bool Wants(Counter counter) {
    return counters == null || Array.IndexOf(counters, counter.Category + "/" + counter.Name) >= 0;
  }

  /// Throws FormatException with a message for the user.
  public static Options Parse(string text) {
    var options = new Options();
    foreach (var option in text.Split(new[] { ',' }, StringSplitOptions.RemoveEmptyEntries)) {
      var equals = option.IndexOf('=');
      var name = equals < 0 ? option : option.Substring(0, equals);
      var value = equals < 0 ? "" : option.Substring(equals + 1);
      switch (name) {
        case "host": options.Host = Name(name, value); break;
        case "port": options.Port = Number(name, value, 1, 65535); break;
        case "interval": options.Interval = Number(name, value, 10, 600000); break;
        case "counters": options.counters = value == All ? null : value.Split(';'); break;
        default: throw new FormatException("there is no option \"" + name + "\", but host, port, interval, counters");
      }
    }
    return options;
  }

  static string Name(string name, string text) {
    if (text != "") return text;
    throw new FormatException(name + " is a name or an address, not \"\"");
  }

  static int Number(string name, string text, int least, int most) {
    int number;
    var isNumber = int.TryParse(text, NumberStyles.None, CultureInfo.InvariantCulture, out number);
    if (isNumber && number >= least && number <= most) return number;
    throw new FormatException(name + " is a number from " + least + " to " + most + ", not \"" + text + "\"");
  }
}
