/**
 * A disk as a power cut sees it. What was synced is there. Of every later write, each change of size and each name any
 * subset may be: whole, in part (sectors of 512 bytes), or only the size without the bytes. Names come and go in their order.
 */
import type { Random } from '../../support/random.ts'
import type { TraceEvent } from './trace.ts'

const SECTOR = 512

type Pending =
  | { readonly at: number; readonly bytes: Uint8Array }
  /** ftruncate */
  | { readonly size: number }

/** A file's bytes, growing. */
class Content {
  bytes: Buffer = Buffer.alloc(1 << 16)
  size = 0

  apply(change: Pending): void {
    if ('size' in change) this.resize(change.size)
    else this.write(change.at, change.bytes)
  }

  write(at: number, bytes: Uint8Array): void {
    if (at + bytes.length > this.size) this.resize(at + bytes.length)
    this.bytes.set(bytes, at)
  }

  resize(size: number): void {
    if (size > this.bytes.length) this.bytes = Buffer.concat([this.bytes, Buffer.alloc(size)])
    if (size < this.size) this.bytes.fill(0, size, this.size)
    this.size = size
  }

  copy(): Content {
    const copy = new Content()
    copy.bytes = Buffer.from(this.bytes.subarray(0, this.size))
    copy.size = this.size
    return copy
  }
}

class File {
  readonly synced = new Content()
  pending: Pending[] = []

  sync(): void {
    for (const change of this.pending) this.synced.apply(change)
    this.pending = []
  }

  /** `keep`: how likely each change is there. */
  cut(random: Random, keep: number): Buffer {
    const content = this.synced.copy()
    for (const change of this.pending) {
      if (random.next() < keep) content.apply(change)
      else if (random.below(3) === 0 && 'bytes' in change) tear(content, change, random)
    }
    return content.bytes.subarray(0, content.size)
  }

  /** The first `count` changes, the next one torn. */
  prefix(random: Random): Buffer {
    const content = this.synced.copy()
    const count = random.below(this.pending.length + 1)
    for (const change of this.pending.slice(0, count)) content.apply(change)
    const next = this.pending[count]
    if (next !== undefined && 'bytes' in next) tear(content, next, random)
    return content.bytes.subarray(0, content.size)
  }
}

/** Some sectors of a write; or none, but the file has grown. */
function tear(content: Content, { at, bytes }: { at: number; bytes: Uint8Array }, random: Random): void {
  if (random.below(4) === 0) {
    content.resize(Math.max(content.size, at + bytes.length))
    return
  }
  for (let from = at; from < at + bytes.length; ) {
    const to = Math.min(at + bytes.length, (Math.floor(from / SECTOR) + 1) * SECTOR)
    if (random.below(2) === 0) content.write(from, bytes.subarray(from - at, to - at))
    from = to
  }
}

export class Disk {
  #names = new Map<string, File>()
  #syncedNames = new Map<string, File>()
  /** Changes of names since they were synced. */
  #pendingNames: { readonly name: string; readonly file: File | undefined }[] = []

  apply(event: TraceEvent): void {
    if (event.kind === 'sync-names') {
      this.#syncedNames = new Map(this.#names)
      this.#pendingNames = []
    } else if (event.kind === 'create') {
      if (!this.#names.has(event.name)) this.#name(event.name, new File())
    } else if (event.kind === 'remove') {
      this.#name(event.name, undefined)
    } else if (event.kind !== 'line') {
      const file = this.#names.get(event.name)
      if (file === undefined) throw new Error(`${event.name} was written before it was made`)
      if (event.kind === 'sync') file.sync()
      else if (event.kind === 'size') file.pending.push({ size: event.size })
      else file.pending.push(event)
    }
  }

  #name(name: string, file: File | undefined): void {
    apply(this.#names, name, file)
    this.#pendingNames.push({ name, file })
  }

  /** What could be left if the power went now. */
  cut(random: Random): Map<string, Buffer> {
    const names = new Map(this.#syncedNames)
    const known = random.below(2) === 0 ? this.#pendingNames.length : random.below(this.#pendingNames.length + 1)
    for (const { name, file } of this.#pendingNames.slice(0, known)) apply(names, name, file)
    const keep = random.pick([0, 0, 0.1, 0.5, 0.9, 1, -1])
    return new Map([...names].map(([name, file]) => [name, keep < 0 ? file.prefix(random) : file.cut(random, keep)]))
  }
}

function apply(names: Map<string, File>, name: string, file: File | undefined): void {
  if (file === undefined) names.delete(name)
  else names.set(name, file)
}
