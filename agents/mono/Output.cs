// Encodes outgoing messages, little-endian. The buffer is reused, so that samples produce no garbage.
using System;
using System.Text;

sealed class Output {
  byte[] bytes = new byte[4096];
  int length;

  public void Byte(int value) {
    if (length == bytes.Length) Array.Resize(ref bytes, 2 * length);
    bytes[length++] = (byte)value;
  }

  public void Short(int value) => Integer(value, 2);

  public void Int(int value) => Integer(value, 4);

  public void Long(long value) => Integer(value, 8);

  /// Null is encoded as length -1.
  public void Text(string text) {
    if (text == null) {
      Int(-1);
      return;
    }
    var encoded = Encoding.UTF8.GetBytes(text);
    Int(encoded.Length);
    Bytes(encoded, encoded.Length);
  }

  public void Bytes(byte[] from, int count) {
    for (var at = 0; at < count; at++) Byte(from[at]);
  }

  /// Sends and clears the buffer. False if the connection has failed.
  public bool SendTo(Connection connection) {
    var count = length;
    length = 0;
    return connection.Send(bytes, count);
  }

  void Integer(long value, int size) {
    for (var at = 0; at < size; at++) Byte((int)(value >> 8 * at));
  }
}
