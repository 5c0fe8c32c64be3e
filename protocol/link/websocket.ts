/** A Link over a WebSocket of the `ws` library: binary messages, their payloads concatenated [MON 13]. */
import type { WebSocket } from 'ws'
import type { Link, LinkListener } from './link.ts'

export class WebSocketLink implements Link {
  readonly #socket: WebSocket
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
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(data, { binary }, () => written?.())
    else written?.()
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
    // The library closes by itself then, and says why (1002, 1007, 1009): `terminate` would overtake that.
    this.#socket.on('error', closed)
    this.#socket.on('close', closed)
  }
}
