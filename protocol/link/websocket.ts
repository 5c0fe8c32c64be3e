/** A Link over a WebSocket of the `ws` library: binary messages, their payloads concatenated [MON 13]. */
import type { WebSocket } from 'ws'
import type { Link, LinkListener } from './link.ts'

/** The time that a peer has to close after our close; the 30 s of the library would exceed the time limit of a login. */
const CLOSE_MS = 1000

export class WebSocketLink implements Link {
  readonly #socket: WebSocket
  /** The number of writes that have not left this process. */
  #writes = 0
  #isEnded = false
  #listener: LinkListener | undefined

  constructor(socket: WebSocket) {
    this.#socket = socket
    socket.binaryType = 'nodebuffer'
  }

  write(bytes: Uint8Array, written?: () => void): void {
    this.#send(bytes, true, written)
  }

  writeText(text: string, written?: () => void): void {
    this.#send(text, false, written)
  }

  #send(data: Uint8Array | string, binary: boolean, written?: () => void): void {
    if (this.#socket.readyState !== this.#socket.OPEN) {
      written?.()
      return
    }
    this.#writes++
    this.#socket.send(data, { binary }, () => {
      this.#writes--
      if (this.#isEnded) this.#linger()
      written?.()
    })
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  end(code = 1000, reason = ''): void {
    this.#socket.resume()
    this.#socket.close(code, reason)
    this.#isEnded = true
    this.#linger()
  }

  #linger(): void {
    if (this.#writes === 0) setTimeout(() => this.#socket.terminate(), CLOSE_MS).unref()
  }

  destroy(): void {
    this.#socket.terminate()
  }

  listen(listener: LinkListener): void {
    const isFirst = this.#listener === undefined
    this.#listener = listener
    if (!isFirst) return
    let open = true
    const closed = (): void => {
      if (open) this.#listener?.closed()
      open = false
    }
    this.#socket.on('message', (data: Buffer, isBinary: boolean) => {
      if (isBinary) this.#listener?.data(data)
      else if (this.#listener?.text) this.#listener.text(data.toString('utf8'))
      else this.end(1003, 'this subprotocol carries binary messages')
    })
    // The library then closes by itself and sends the reason (1002, 1007, 1009); a `terminate` now would overtake that.
    this.#socket.on('error', () => {
      closed()
      this.#isEnded = true
      this.#linger()
    })
    this.#socket.on('close', closed)
  }
}
