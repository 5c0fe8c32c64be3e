// The addresses of a name, by the C library's resolver. It is asked to work on a thread of its own, which Mono knows
// nothing of: else a silent name server would hold up the end of the application for ten seconds.
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
  /// The numbers of Linux and its C library.
  const int Stream = 1, NoWait = 1, InProgress = -100;
  const int StepMilliseconds = 20;

  /// The C library reads and writes it while it works; so it stands where nothing is moved.
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

  /// None if nobody is called so.
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
