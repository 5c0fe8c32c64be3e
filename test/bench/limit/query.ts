/** An answer of as many bytes as the measured one to each QUERY. */
import type { Socket } from 'node:net'
import { join } from '../../support/bytes.ts'
import { type ConsumerEvents, LimitConsumer, okFrame } from './consumer.ts'
import type { LimitJob } from './job.ts'
import { valueFrame } from './value-frame.ts'

export class Query implements ConsumerEvents {
  readonly answer: Uint8Array

  constructor({ frameBytes }: LimitJob) {
    this.answer = join(okFrame(0), valueFrame(frameBytes))
  }

  consumer(socket: Socket): void {
    new LimitConsumer(socket, this)
  }

  subscribed(): void {}
  committed(): void {}

  stored(): number {
    return 0
  }
}
