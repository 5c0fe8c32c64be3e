// One connection: Hello, then at each interval a sample of the counters that have changed, and answers in between.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Threading;

sealed class Session {
  enum Message { Hello, List, Add, Remove, Sampling }

  enum Status { Ok, Nok, NotFound, Existing }

  const int Version = 1;
  const int None = -1;
  /// A request waits at most this long, unless there are very many: this limits the processor time that an endless stream of
  /// requests can take.
  const int AnswerMilliseconds = 50;
  const int MostAnswers = 64;

  /// A counter of this session and the bytes of it that were sent last.
  sealed class Sampled {
    public Counter Counter;
    public short Index;
    public readonly byte[] Sent = new byte[Counter.MaxSize];
    public int SentSize = None;
  }

  readonly Connection connection;
  readonly Catalogue catalogue;
  readonly int interval;
  readonly List<Sampled> sampled = new List<Sampled>();
  readonly Output output = new Output();
  readonly Input input = new Input();
  readonly byte[] value = new byte[Counter.MaxSize];
  /// Indexes are never reused; the largest one is that of a short.
  int nextIndex;
  /// The time of the next sample by the clock of the session.
  long due;

  public Session(Connection connection, Catalogue catalogue, Options options) {
    this.connection = connection;
    this.catalogue = catalogue;
    interval = options.Interval;
    foreach (var counter in catalogue.Counters) if (options.Wants(counter)) Begin(counter);
  }

  /// Runs until the connection ends. True if the inspector said good-bye, false if reconnecting makes sense.
  public bool Run() {
    if (!Hello()) return false;
    var clock = Stopwatch.StartNew();
    for (var answers = 0;;) {
      if (!Sample()) return false;
      due += interval;
      // After a delay, for example when the machine was asleep, missed samples are not made up for.
      if (due <= clock.ElapsedMilliseconds) due = clock.ElapsedMilliseconds + interval;
      for (long left; (left = due - clock.ElapsedMilliseconds) > 0;) {
        Thread.Sleep((int)Math.Min(left, AnswerMilliseconds));
        if (answers < MostAnswers && connection.HasMore && !input.ReceiveFrom(connection)) return false;
        for (answers = 0; answers < MostAnswers && input.Take(); answers++) {
          if (input.Request == Request.GoodBye) return true;
          if (!Answer()) return false;
        }
      }
    }
  }

  bool Hello() {
    output.Byte((int)Message.Hello);
    output.Short(Version);
    output.Short(sampled.Count);
    foreach (var each in sampled) Header(each);
    return output.SendTo(connection);
  }

  bool Sample() {
    output.Byte((int)Message.Sampling);
    output.Long(DateTime.UtcNow.Ticks);
    foreach (var each in sampled) {
      var size = each.Counter.Read(value);
      if (!Changed(each, size)) continue;
      output.Short(each.Index);
      output.Short(size);
      output.Bytes(value, size);
    }
    output.Short(None);
    return output.SendTo(connection);
  }

  /// Whether `value` differs from the last one sent; stores it as such.
  bool Changed(Sampled each, int size) {
    var changed = size != each.SentSize;
    for (var at = 0; at < size; at++) {
      changed |= each.Sent[at] != value[at];
      each.Sent[at] = value[at];
    }
    each.SentSize = size;
    return changed;
  }

  /// False if the request is unknown, because the beginning of the next one is unknown then; or if the connection has failed.
  bool Answer() {
    switch (input.Request) {
      case Request.List: List(); break;
      case Request.Add: Add(); break;
      case Request.Remove: Remove(); break;
      default: return false;
    }
    return output.SendTo(connection);
  }

  void List() {
    output.Byte((int)Message.List);
    foreach (var counter in catalogue.Counters) {
      output.Text(counter.Name);
      output.Text(counter.Category);
    }
    output.Text(null);
  }

  void Add() {
    output.Byte((int)Message.Add);
    var counter = catalogue.Find(input.Category, input.Name);
    if (counter == null) output.Byte((int)Status.NotFound);
    else if (sampled.Exists(each => each.Counter == counter)) output.Byte((int)Status.Existing);
    else if (nextIndex > short.MaxValue) output.Byte((int)Status.Nok);
    else {
      output.Byte((int)Status.Ok);
      Header(Begin(counter));
      // The next sample is due at once: the requester need not wait for the interval.
      due = 0;
    }
  }

  /// A negative index removes all.
  void Remove() {
    var removed = sampled.RemoveAll(each => input.Index < 0 || each.Index == input.Index);
    output.Byte((int)Message.Remove);
    output.Byte((int)(removed > 0 || input.Index < 0 ? Status.Ok : Status.NotFound));
  }

  Sampled Begin(Counter counter) {
    var each = new Sampled { Counter = counter, Index = (short)nextIndex++ };
    sampled.Add(each);
    return each;
  }

  void Header(Sampled each) {
    output.Int(each.Counter.CategoryNumber);
    output.Text(each.Counter.HeaderName);
    output.Int((int)each.Counter.Type);
    output.Int((int)each.Counter.Unit);
    output.Int((int)each.Counter.Variance);
    output.Short(each.Index);
  }
}
