/** Standard input and output: a line of JSON for each message. What was asked before the input ends is answered. */
import { setTimeout as pause } from 'node:timers/promises'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import type { JSONRPCMessage, RequestId } from '@modelcontextprotocol/sdk/types.js'

/** A line that a client may send. */
const MAX_LINE_BYTES = 1 << 20
/** No call takes longer. */
const PATIENCE_MS = 60_000

export class Stdio extends StdioServerTransport {
  readonly #unanswered = new Set<RequestId>()
  #changed: () => unknown = () => {}

  constructor() {
    super(process.stdin, process.stdout, { maxBufferSize: MAX_LINE_BYTES })
  }

  override async start(): Promise<void> {
    const pass = this.onmessage
    this.onmessage = (message) => {
      if ('method' in message && 'id' in message) this.#unanswered.add(message.id)
      else if ('method' in message && message.method === 'notifications/cancelled') {
        this.#end(message.params?.['requestId'] as RequestId)
      }
      pass?.(message)
    }
    await super.start()
  }

  override async send(message: JSONRPCMessage): Promise<void> {
    await super.send(message)
    if (!('method' in message) && message.id !== undefined) this.#end(message.id)
  }

  /** Resolves when everything was answered that was asked until now. */
  async answered(): Promise<void> {
    const late = pause(PATIENCE_MS, undefined, { ref: false })
    const all = new Promise<void>((resolve) => {
      this.#changed = () => this.#unanswered.size === 0 && resolve()
      this.#changed()
    })
    await Promise.race([late, all])
  }

  #end(id: RequestId): void {
    this.#unanswered.delete(id)
    this.#changed()
  }
}
