/**
 * Selects the extra elements for the XML. For each metric name, gmetad keeps every element that any host ever sent, for as
 * long as it runs, and crashes when they overflow its arrays. So only the first few elements of each name are shown.
 */
import type { ExtraElement } from '../../../protocol/gmetric/packet.ts'

/** gmetad has room for 32, some of which may be from before a restart of this server, and for 1,572 bytes with the first metric. */
const MAX_ELEMENTS = 16
const MAX_BYTES = 1000
/** The only element that gmetad does not keep by name. */
const NOT_KEPT = 'SPOOF_HOST'
const ENTRY_BYTES = 64
const MAX_HELD_BYTES = 64 * 1024 * 1024
/** A name that was not used for this long may get other elements. */
const FORGOTTEN_MS = 3_600_000

interface Shown {
  readonly elements: Set<string>
  bytes: number
  usedMs: number
}

export class ShownExtraElements {
  readonly #byName = new Map<string, Shown>()
  #heldBytes = 0

  /** The elements of `extra` that may be shown for a metric of this name. */
  shown(metric: string, extra: readonly ExtraElement[], nowMs: number): readonly ExtraElement[] {
    if (extra.length === 0) return extra
    let shown = this.#byName.get(metric)
    if (shown === undefined) {
      shown = { elements: new Set(), bytes: 0, usedMs: nowMs }
      if (this.#hold(ENTRY_BYTES + metric.length)) this.#byName.set(metric, shown)
      else shown.bytes = MAX_BYTES
    }
    shown.usedMs = nowMs
    return extra.filter((element) => this.#mayShow(shown, element))
  }

  /** Removes unused names; call this now and then. */
  forget(nowMs: number): void {
    for (const [name, { bytes, usedMs }] of this.#byName) {
      if (nowMs - usedMs < FORGOTTEN_MS) continue
      this.#byName.delete(name)
      this.#heldBytes -= ENTRY_BYTES + name.length + bytes
    }
  }

  #mayShow(shown: Shown, { key, data }: ExtraElement): boolean {
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
