/**
 * A link whose peer speaks `monitoring.json`: frames go out as text, one object per message, so that a session always
 * writes XDR. Incoming messages are text and are read by `JsonCommandSource`.
 */
import { Framer, MAX_FRAME_BYTES } from '../../protocol/bytes/framer.ts'
import { XdrReader } from '../../protocol/bytes/reader.ts'
import type { Link, LinkListener } from '../../protocol/link/link.ts'
import type { WebSocketLink } from '../../protocol/link/websocket.ts'
import { messageToJson } from '../../protocol/monitor/json.ts'
import { readMessage } from '../../protocol/monitor/message.ts'

export class JsonLink implements Link {
  readonly #link: WebSocketLink
  readonly #reader = new XdrReader()

  constructor(link: WebSocketLink) {
    this.#link = link
  }

  /** `bytes` are whole frames. */
  write(bytes: Uint8Array, written?: () => void): void {
    const framer = new Framer(MAX_FRAME_BYTES)
    framer.push(bytes)
    let text: string | undefined
    while (framer.next()) {
      if (text !== undefined) this.#link.writeText(text)
      this.#reader.reset(framer.bytes, framer.start, framer.end, framer.view)
      text = JSON.stringify(messageToJson(readMessage(this.#reader)))
    }
    if (text !== undefined) this.#link.writeText(text, written)
    else written?.()
  }

  pause(): void {
    this.#link.pause()
  }

  resume(): void {
    this.#link.resume()
  }

  end(code?: number, reason?: string): void {
    this.#link.end(code, reason)
  }

  destroy(): void {
    this.#link.destroy()
  }

  listen(listener: LinkListener): void {
    this.#link.listen(listener)
  }
}
