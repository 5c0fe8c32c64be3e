/**
 * Which extra elements stand in the XML. gmetad keeps all that any host ever said of a metric of one name, for as long as
 * it runs, and ends when that is more than its arrays hold, which it does not check. So each name has the first few.
 */
import type { ExtraElement } from '../../../protocol/gmetric/packet.ts'

/** gmetad has 32, of which some may be from before a restart here; and 1,572 bytes, less those of the first metric. */
const MAX_ELEMENTS = 16
const MAX_BYTES = 1000
/** The one that gmetad does not keep by name. */
const NOT_KEPT = 'SPOOF_HOST'
const ENTRY_BYTES = 64
const MAX_HELD_BYTES = 64 * 1024 * 1024
/** A name that was gone for so long may say other things. */
const FORGOTTEN_MS = 3_600_000

interface Shown {
  readonly elements: Set<string>
  bytes: number
  usedMs: number
}

export class ShownExtraElements {
  readonly #byName = new Map<string, Shown>()
  #heldBytes = 0

  /** Those of `extra` that may be shown for a metric of that name. */
  shown(metric: string, extra: readonly ExtraElement[], nowMs: number): readonly ExtraElement[] {
    if (extra.length === 0) return extra
    let shown = this.#byName.get(metric)
    if (shown === undefined) {
      shown = { elements: new Set(), bytes: 0, usedMs: nowMs }
      if (this.#hold(ENTRY_BYTES + metric.length)) this.#byName.set(metric, shown)
      else shown.bytes = MAX_BYTES
    }
    shown.usedMs = nowMs
    return extra.filter((element) => this.#mayBe(shown, element))
  }

  /** To be called now and then. */
  forget(nowMs: number): void {
    for (const [name, { bytes, usedMs }] of this.#byName) {
      if (nowMs - usedMs < FORGOTTEN_MS) continue
      this.#byName.delete(name)
      this.#heldBytes -= ENTRY_BYTES + name.length + bytes
    }
  }

  #mayBe(shown: Shown, { key, data }: ExtraElement): boolean {
    if (key.toUpperCase() === NOT_KEPT) return true
    const element = `${key}\0${data}`
    if (shown.elements.has(element)) return true
    if (shown.elements.size >= MAX_ELEMENTS || shown.bytes + element.length > MAX_BYTES) return false
    const bytes = Buffer.byteLength(element) + 1
    if (shown.bytes + bytes > MAX_BYTES || !this.#hold(bytes)) return false
    shown.elements.add(element)
    shown.bytes += bytes
    return true
  }

  #hold(bytes: number): boolean {
    if (this.#heldBytes + bytes > MAX_HELD_BYTES) return false
    this.#heldBytes += bytes
    return true
  }
}
