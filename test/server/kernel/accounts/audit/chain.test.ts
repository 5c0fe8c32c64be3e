/** The log as the server writes it, over restarts and pruning, and verified as it lies on disk. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { AuditLog } from '../../../../../server/kernel/accounts/audit/log.ts'
import { verifyAudit } from '../../../../../server/kernel/accounts/audit/verify.ts'
import { Journal } from '../../../../../server/kernel/channels/journal.ts'
import { TurnScheduler } from '../../../../../server/kernel/channels/turn-scheduler.ts'
import { FakeClock } from '../../../../support/fake-clock.ts'
import { threadlessStore } from '../../../../support/threadless-store.ts'

test('what the server wrote is whole, whatever texts were in it', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'chain-'))
  const clock = new FakeClock()
  const texts = ['', 'é😀', '\0', '\ud800', 'x'.repeat(5000), '\ufffd', "'; drop table audit; --"]
  for (let life = 1; life <= 3; life++) {
    const store = threadlessStore({ directory, reserveBytes: 0 })
    const events = { onDurable: (n: number) => journal.onDurable(n), onFull() {}, onRoom() {}, onFailed() {} }
    const { audited } = await store.open(events)
    const journal = new Journal(store, new TurnScheduler(clock), {
      age: () => clock.monotonicMs(),
      wallMs: () => clock.wallMs(),
    })
    const audit = new AuditLog({ journal, clock, store, audited })
    for (const text of texts) {
      const identity = { tenant: text, name: text }
      audit.record({
        action: text,
        identity,
        address: text,
        object: text,
        args: { [text]: text },
        outcome: text,
        detail: text,
      })
      clock.advance(1)
    }
    await journal.whenStored()
    await audit.prune(life === 2 ? 10 : 1_000_000)
    await store.close()
    const first = life === 1 ? 1 : 5
    const last = life * texts.length
    const finding = verifyAudit(join(directory, 'cinnabar.db'))
    expect(finding).toMatchObject({ whole: true, first, last, records: last - first + 1 })
  }
  rmSync(directory, { recursive: true })
})
