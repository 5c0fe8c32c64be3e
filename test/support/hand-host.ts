/** What a queue needs of the server around it, moved by hand: its clock stands still, and the disk is full when a test says so. */
import { Inlets } from '../../server/kernel/channels/inlets.ts'
import { noDrops } from '../../server/kernel/channels/ledger.ts'
import { Pool } from '../../server/kernel/channels/pool.ts'
import type { QueueHost } from '../../server/kernel/channels/queue-host.ts'

export class HandHost implements QueueHost {
  pool = new Pool()
  readonly inlets = new Inlets()
  refusing: 'full' | 'overflow' | undefined
  unstored = 0
  refused = 0
  accepted = 0
  sent = 0
  readonly dropped = noDrops()
  /** The age clock. */
  now: number
  /** The last id of a block or a GAP that was given. */
  id = 0

  constructor(now = 0) {
    this.now = now
  }

  get refusesAbove(): number {
    return this.refusing === undefined ? Number.POSITIVE_INFINITY : -1
  }

  nextId(): number {
    return ++this.id
  }

  age(): number {
    return this.now
  }

  stamp(): number {
    return this.now
  }
}
