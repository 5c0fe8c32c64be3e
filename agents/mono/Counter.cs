// A number that can be read at any time, with the properties in its header. The values of the enums are those of the wire.
using System;

enum ValueType { Int, Long, Word, Double }

enum Unit { None, Bytes, Time, Events, Config, Percentage }

enum Variance { Constant = 1, Monotonic, Variable }

abstract class Counter {
  /// The maximum size of a value in bytes.
  public const int MaxSize = 8;

  /// Categories with a number of their own; all others are custom.
  static readonly string[] Categories = {
    "Mono JIT", "Mono GC", "Mono Metadata", "Mono Generics", "Mono Security", "Mono Thread", "Mono ThreadPool",
    "Mono System",
  };
  const int Custom = 8;

  /// The category as named in lists and requests.
  public readonly string Category;
  public readonly string Name;
  public readonly int CategoryNumber;
  public readonly ValueType Type;
  public readonly Unit Unit;
  public readonly Variance Variance;

  protected Counter(string category, string name, ValueType type, Unit unit, Variance variance) {
    var number = Array.IndexOf(Categories, category);
    CategoryNumber = number < 0 ? Custom : number;
    Category = category;
    Name = name;
    Type = type;
    Unit = unit;
    Variance = variance;
  }

  /// The name used in headers.
  public string HeaderName => CategoryNumber == Custom ? Category + ":" + Name : Name;

  /// Writes the current value into the first bytes of `value` and returns its size.
  public abstract int Read(byte[] value);
}

/// A counter that managed code can read.
sealed class ManagedCounter : Counter {
  readonly Func<long> read;

  public ManagedCounter(string category, string name, Unit unit, Variance variance, Func<long> read)
    : base(category, name, ValueType.Long, unit, variance) {
    this.read = read;
  }

  public override int Read(byte[] value) {
    var number = read();
    for (var at = 0; at < 8; at++) value[at] = (byte)(number >> 8 * at);
    return 8;
  }
}
