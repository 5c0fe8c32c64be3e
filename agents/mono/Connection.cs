// A TCP connection that uses the C library. System.Net would read the application's configuration files, compile hundreds of
// methods, and throw exceptions that count among the application's. Nothing here throws, and nothing waits outside of
// Thread.Sleep: Mono does not let an application end before its threads have returned from the C library.
using System;
using System.Globalization;
using System.Runtime.InteropServices;
using System.Threading;

sealed class Connection : IDisposable {
  /// Constants of Linux.
  const int Stream = 1, NonBlocking = 0x800, CloseOnExec = 0x80000, NoSignal = 0x4000, SocketLevel = 1, Error = 4;
  const short In = 1, Out = 4;
  /// The connection is given up if the other side does not answer or read for this long.
  const int PatienceMilliseconds = 5000;
  const int StepMilliseconds = 20;

  [StructLayout(LayoutKind.Sequential)]
  struct Awaited {
    public int Descriptor;
    public short Events, Happened;
  }

  [DllImport("libc")] static extern int socket(int family, int type, int protocol);
  [DllImport("libc")] static extern int connect(int descriptor, IntPtr address, int length);
  [DllImport("libc")] static extern int getsockopt(int descriptor, int level, int name, out int value, ref int length);
  [DllImport("libc")] static extern int poll(ref Awaited awaited, IntPtr count, int milliseconds);
  [DllImport("libc")] static extern unsafe IntPtr send(int descriptor, byte* bytes, IntPtr count, int flags);
  [DllImport("libc")] static extern unsafe IntPtr recv(int descriptor, byte* bytes, IntPtr count, int flags);
  [DllImport("libc")] static extern int close(int descriptor);

  readonly int descriptor;

  Connection(int descriptor) {
    this.descriptor = descriptor;
  }

  /// Null if nobody accepts the connection.
  public static Connection Open(string host, int port) {
    using (var resolved = Resolved.Of(host, port)) {
      foreach (var address in resolved.Addresses()) {
        var connection = new Connection(socket(address.Family, Stream | NonBlocking | CloseOnExec, 0));
        if (connection.descriptor >= 0 && connection.ConnectTo(address)) return connection;
        connection.Dispose();
      }
    }
    return null;
  }

  /// False if the other side is gone, or reads nothing.
  public unsafe bool Send(byte[] bytes, int count) {
    for (int sent = 0; sent < count;) {
      if (!Can(Out, PatienceMilliseconds)) return false;
      fixed (byte* from = &bytes[sent]) {
        var now = (int)send(descriptor, from, (IntPtr)(count - sent), NoSignal);
        if (now <= 0) return false;
        sent += now;
      }
    }
    return true;
  }

  /// Whether there is something to receive, even if it is only the end of the connection.
  public bool HasMore => Can(In, 0);

  /// Returns the number of received bytes; 0 if the connection has ended.
  public unsafe int Receive(byte[] bytes, int at) {
    if (at == bytes.Length) return 0;
    fixed (byte* to = &bytes[at]) return Math.Max(0, (int)recv(descriptor, to, (IntPtr)(bytes.Length - at), 0));
  }

  public void Dispose() {
    if (descriptor >= 0) close(descriptor);
  }

  bool ConnectTo(AddressInfo address) {
    int error = 0, length = sizeof(int);
    connect(descriptor, address.Address, address.Length);
    return Can(Out, PatienceMilliseconds)
      && getsockopt(descriptor, SocketLevel, Error, out error, ref length) == 0 && error == 0;
  }

  /// Waits until the socket is readable or writable. A thread that sleeps here ends with the application at once.
  bool Can(short what, int patience) {
    for (;;) {
      var awaited = new Awaited { Descriptor = descriptor, Events = what };
      if (poll(ref awaited, (IntPtr)1, 0) > 0) return true;
      if (patience <= 0) return false;
      Thread.Sleep(StepMilliseconds);
      patience -= StepMilliseconds;
    }
  }
}
