// Decodes requests, which may arrive in pieces. A missing piece does not throw, since exceptions are counted among the
// application's.
using System;
using System.Text;

enum Request { List = 1, Add = 2, Remove = 3, GoodBye = 0x7f }

sealed class Input {
  /// Longer than any request for an existing counter.
  readonly byte[] bytes = new byte[4096];
  int end;
  int position;

  public Request Request { get; private set; }
  /// Set for an Add.
  public string Name { get; private set; }
  /// Set for an Add.
  public string Category { get; private set; }
  /// Set for a Remove.
  public short Index { get; private set; }

  /// False if the other side has closed the connection or sent a request that is too long.
  public bool ReceiveFrom(Connection connection) {
    var received = connection.Receive(bytes, end);
    end += received;
    return received > 0;
  }

  /// Takes the next request. False if it is incomplete.
  public bool Take() {
    position = 0;
    if (!Has(1)) return false;
    Request = (Request)bytes[position++];
    if (Request == Request.Add && !TakeNames()) return false;
    if (Request == Request.Remove && !TakeIndex()) return false;
    Array.Copy(bytes, position, bytes, 0, end - position);
    end -= position;
    return true;
  }

  bool TakeNames() {
    string name, category;
    if (!TakeText(out name) || !TakeText(out category)) return false;
    Name = name;
    Category = category;
    return true;
  }

  bool TakeIndex() {
    if (!Has(2)) return false;
    Index = (short)(bytes[position] | bytes[position + 1] << 8);
    position += 2;
    return true;
  }

  bool TakeText(out string text) {
    text = null;
    if (!Has(4)) return false;
    var length = bytes[position] | bytes[position + 1] << 8 | bytes[position + 2] << 16 | bytes[position + 3] << 24;
    if (length > end - position - 4) return false;
    position += 4;
    if (length < 0) return true;
    text = Encoding.UTF8.GetString(bytes, position, length);
    position += length;
    return true;
  }

  bool Has(int count) => count <= end - position;
}
