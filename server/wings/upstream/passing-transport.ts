/** A transport that passes everything on to another one. Those that extend it change how bytes arrive. */
import type { Transport, TransportListener } from '../../../client/transport.ts'

export abstract class PassingTransport implements Transport {
  protected readonly transport: Transport

  constructor(transport: Transport) {
    this.transport = transport
  }

  get encrypted(): boolean {
    return this.transport.encrypted
  }

  get loopback(): boolean {
    return this.transport.loopback
  }

  get exporter(): Uint8Array | undefined {
    return this.transport.exporter
  }

  abstract open(listener: TransportListener): void

  send(bytes: Uint8Array, isSecret?: boolean): void {
    this.transport.send(bytes, isSecret)
  }

  pause(): void {
    this.transport.pause()
  }

  resume(): void {
    this.transport.resume()
  }

  close(): void {
    this.transport.close()
  }
}
