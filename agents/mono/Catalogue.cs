// All available counters: those of the runtime, and .NET performance counters. Of the latter only those that Mono really
// maintains: many others are always 0.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.Runtime.InteropServices;

sealed class Catalogue {
  [DllImport("libc")] static extern int getpid();

  public readonly List<Counter> Counters;

  public Catalogue(List<Counter> ofRuntime) {
    Counters = ofRuntime;
    Counters.Add(
      new ManagedCounter("Mono GC", "Managed heap", Unit.Bytes, Variance.Variable, () => GC.GetTotalMemory(false)));
    Add("Mono GC", "Handles", Unit.None, Variance.Variable, ".NET CLR Memory", "# GC Handles");
    Add("Mono Metadata", "Loader heap", Unit.Bytes, Variance.Variable, ".NET CLR Loading", "Bytes in Loader Heap");
    Add("Mono Metadata", "Application domains", Unit.None, Variance.Variable, ".NET CLR Loading", "Current appdomains");
    Add("Mono Thread", "Threads", Unit.None, Variance.Variable, "Process", "Thread Count");
    Add("Mono Thread", "Lock contentions", Unit.Events, Variance.Monotonic,
      ".NET CLR LocksAndThreads", "Total # of Contentions");
    Add("Mono ThreadPool", "Threads", Unit.None, Variance.Variable, "Mono Threadpool", "# of Threads");
    Add("Mono ThreadPool", "Work items", Unit.Events, Variance.Monotonic, "Mono Threadpool", "Work Items Added");
    Add("Exceptions", "Thrown", Unit.Events, Variance.Monotonic, ".NET CLR Exceptions", "# of Exceps Thrown");
  }

  /// Null if there is none.
  public Counter Find(string category, string name) {
    return Counters.Find(counter => counter.Name == name && counter.Category == category);
  }

  /// Adds a performance counter under a name in the style of the runtime's counters.
  void Add(string category, string name, Unit unit, Variance variance, string group, string called) {
    try {
      var process = getpid().ToString(CultureInfo.InvariantCulture);
      var counter = new PerformanceCounter(group, called, process);
      var managed = new ManagedCounter(category, name, unit, variance, () => counter.RawValue);
      managed.Read(new byte[Counter.MaxSize]);
      Counters.Add(managed);
    } catch (Exception) {
      // This Mono does not have the counter.
    }
  }
}
