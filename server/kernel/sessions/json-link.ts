/**
 * A link whose peer speaks `monitoring.json`: frames go out as text, one object per message, so that a session always
 * writes XDR. Incoming messages are text and are read by `JsonCommandSource`. Frames are converted in steps: a list takes long.
 */
import { Framer, MAX_FRAME_BYTES } from '../../../protocol/bytes/framer.ts'
import { XdrReader } from '../../../protocol/bytes/reader.ts'
import type { Link, LinkListener } from '../../../protocol/link/link.ts'
import { messageText } from '../../../protocol/monitor/json.ts'
import { readMessageInSteps } from '../../../protocol/monitor/message.ts'
import type { FairWork, Party, Steps, Work } from '../core/fair-work.ts'

export interface JsonLinkOptions {
  readonly work: Pick<FairWork, 'add'>
  readonly party: Party
  /** A frame could not be converted. */
  readonly failed: (error: unknown) => void
}

interface Write {
  readonly bytes: Uint8Array
  readonly written: (() => void) | undefined
}

export class JsonLink implements Link, Work {
  readonly #link: Link
  readonly #options: JsonLinkOptions
  readonly #reader = new XdrReader()
  /** What is to be converted, in order. The first is being converted. */
  readonly #writes: Write[] = []
  #converting: Steps<void> | undefined
  /** Closes the link after the last conversion. */
  #end: (() => void) | undefined

  constructor(link: Link, options: JsonLinkOptions) {
    this.#link = link
    this.#options = options
  }

  /** `bytes` are whole frames. */
  write(bytes: Uint8Array, written?: () => void): void {
    this.#writes.push({ bytes, written })
    if (this.#writes.length === 1) this.#options.work.add(this.#options.party, this)
  }

  step(): boolean {
    this.#converting ??= this.#convert(this.#writes[0] as Write)
    if (this.#converting.next().done !== true) return false
    this.#converting = undefined
    this.#writes.shift()
    if (this.#writes.length > 0) return false
    this.#end?.()
    return true
  }

  failed(error: unknown): void {
    this.#converting = undefined
    const [lost, end] = [this.#writes.splice(0), this.#end]
    this.#options.failed(error)
    for (const { written } of lost) written?.()
    end?.()
  }

  *#convert({ bytes, written }: Write): Steps<void> {
    const framer = new Framer(MAX_FRAME_BYTES)
    framer.push(bytes)
    let text: string | undefined
    while (framer.next()) {
      if (text !== undefined) this.#link.writeText?.(text)
      this.#reader.reset(framer.bytes, framer.start, framer.end, framer.view)
      text = yield* messageText(yield* readMessageInSteps(this.#reader))
      yield
    }
    if (text !== undefined) this.#link.writeText?.(text, written)
    else written?.()
  }

  pause(): void {
    this.#link.pause()
  }

  resume(): void {
    this.#link.resume()
  }

  end(code?: number, reason?: string): void {
    this.#end = () => this.#link.end(code, reason)
    if (this.#writes.length === 0) this.#end()
  }

  destroy(): void {
    this.#link.destroy()
  }

  listen(listener: LinkListener): void {
    this.#link.listen(listener)
  }
}
