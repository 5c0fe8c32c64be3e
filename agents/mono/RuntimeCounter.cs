// The counters that Mono maintains about itself, read by functions that its executable exports.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

sealed class RuntimeCounter : Counter {
  delegate int Visit(IntPtr counter, IntPtr data);

  [DllImport("__Internal")] static extern void mono_counters_foreach(Visit visit, IntPtr data);
  [DllImport("__Internal")] static extern IntPtr mono_counter_get_name(IntPtr counter);
  [DllImport("__Internal")] static extern int mono_counter_get_section(IntPtr counter);
  [DllImport("__Internal")] static extern int mono_counter_get_type(IntPtr counter);
  [DllImport("__Internal")] static extern int mono_counter_get_unit(IntPtr counter);
  [DllImport("__Internal")] static extern int mono_counter_get_variance(IntPtr counter);
  [DllImport("__Internal")] static extern int mono_counters_sample(IntPtr counter, byte[] value, int size);

  static readonly IntPtr[] Found = new IntPtr[4096];
  static int found;
  /// Stored in a field, so that it is not collected while the runtime calls it.
  static readonly Visit Remember = (counter, data) => {
    if (found < Found.Length) Found[found++] = counter;
    return 1;
  };

  readonly IntPtr handle;

  RuntimeCounter(IntPtr handle, string category, string name, ValueType type, Unit unit, Variance variance)
    : base(category, name, type, unit, variance) {
    this.handle = handle;
  }

  public override int Read(byte[] value) => mono_counters_sample(handle, value, MaxSize);

  /// Lists all counters. Mono holds a lock while it enumerates, and compiling a method may need the same lock. Therefore this
  /// is called once, before the application has any thread; the callback is compiled in advance and only stores handles.
  /// Counters exist as long as the runtime and are read without that lock.
  public static List<Counter> All() {
    Remember(IntPtr.Zero, IntPtr.Zero);
    found = 0;
    mono_counters_foreach(Remember, IntPtr.Zero);
    var counters = new List<Counter>();
    for (var at = found - 1; at >= 0; at--) {
      var counter = Describe(Found[at]);
      if (counter != null) counters.Add(counter);
    }
    return counters;
  }

  /// Null if the protocol has no type for the counter.
  static Counter Describe(IntPtr handle) {
    ValueType type;
    switch (mono_counter_get_type(handle)) {
      case 0: case 1: type = ValueType.Int; break;
      case 2: type = ValueType.Word; break;
      case 3: case 4: type = ValueType.Long; break;
      case 5: type = ValueType.Double; break;
      default: return null;
    }
    var name = Marshal.PtrToStringAnsi(mono_counter_get_name(handle));
    return new RuntimeCounter(handle, CategoryOf(handle), name, type, UnitOf(handle), VarianceOf(handle));
  }

  static string CategoryOf(IntPtr handle) {
    switch (mono_counter_get_section(handle)) {
      case 0x100: return "Mono JIT";
      case 0x200: return "Mono GC";
      case 0x400: return "Mono Metadata";
      case 0x800: return "Mono Generics";
      case 0x1000: return "Mono Security";
      case 0x4000: return "Mono System";
      default: return "Runtime";
    }
  }

  static Unit UnitOf(IntPtr handle) {
    switch (mono_counter_get_unit(handle) >> 24) {
      case 1: return Unit.Bytes;
      case 2: return Unit.Time;
      case 3: return Unit.Events;
      case 4: return Unit.Percentage;
      default: return Unit.None;
    }
  }

  static Variance VarianceOf(IntPtr handle) {
    switch (mono_counter_get_variance(handle) >> 28) {
      case 1: return Variance.Monotonic;
      case 2: return Variance.Constant;
      default: return Variance.Variable;
    }
  }
}
