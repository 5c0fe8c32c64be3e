// The addresses of a name from the C library's resolver. It works on a thread of its own, unknown to Mono: otherwise a name
// server that does not answer would delay the end of the application by ten seconds.
using System;
using System.Collections.Generic;
using System.Globalization;
using System.Runtime.InteropServices;
using System.Threading;

[StructLayout(LayoutKind.Sequential)]
struct AddressInfo {
  public int Flags, Family, Type, Protocol, Length;
  public IntPtr Address, CanonicalName, Next;
}

sealed class Resolved : IDisposable {
  /// Constants of Linux and its C library.
  const int Stream = 1, NoWait = 1, InProgress = -100;
  const int StepMilliseconds = 20;

  /// The C library reads and writes this while it works, so it is in unmanaged memory.
  [StructLayout(LayoutKind.Sequential)]
  struct Question {
    public IntPtr Host, Port, Hints, Found;
    public int Result, Unused0, Unused1, Unused2, Unused3, Unused4;
  }

  [DllImport("libanl.so.1")] static extern int getaddrinfo_a(int mode, IntPtr[] questions, int count, IntPtr tell);
  [DllImport("libanl.so.1")] static extern int gai_error(IntPtr question);
  [DllImport("libc")] static extern void freeaddrinfo(IntPtr found);

  IntPtr found;

  public static Resolved Of(string host, int port) {
    var question = Allocated(new Question {
      Host = Marshal.StringToHGlobalAnsi(host),
      Port = Marshal.StringToHGlobalAnsi(port.ToString(CultureInfo.InvariantCulture)),
      Hints = Allocated(new AddressInfo { Type = Stream }),
    });
    getaddrinfo_a(NoWait, new[] { question }, 1, IntPtr.Zero);
    while (gai_error(question) == InProgress) Thread.Sleep(StepMilliseconds);
    var answered = (Question)Marshal.PtrToStructure(question, typeof(Question));
    foreach (var used in new[] { answered.Host, answered.Port, answered.Hints, question }) Marshal.FreeHGlobal(used);
    return new Resolved { found = answered.Result == 0 ? answered.Found : IntPtr.Zero };
  }

  /// Empty if the name does not exist.
  public IEnumerable<AddressInfo> Addresses() {
    for (var at = found; at != IntPtr.Zero;) {
      var address = (AddressInfo)Marshal.PtrToStructure(at, typeof(AddressInfo));
      yield return address;
      at = address.Next;
    }
  }

  public void Dispose() {
    if (found != IntPtr.Zero) freeaddrinfo(found);
  }

  static IntPtr Allocated<T>(T structure) {
    var memory = Marshal.AllocHGlobal(Marshal.SizeOf(typeof(T)));
    Marshal.StructureToPtr(structure, memory, false);
    return memory;
  }
}
