/** When drains begin, and with which tables: those in force when the server may deliver, whatever it was started with. */
import { expect, it } from 'vitest'
import { Hub } from '../../../../server/kernel/metrics/hub.ts'
import type { Kit } from '../../../../server/kit/kit.ts'
import type { DrainTable } from '../../../../server/wings/drains/config.ts'
import { drain } from '../../../../server/wings/drains/source.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { handKit } from '../../../support/hand-kit.ts'

/** The name alone is looked at, as its channel is refused. */
const table = (name: string) => ({ name, tenant: 'default', role: 'consumer', metrics: [] }) as unknown as DrainTable

it('drains begin when the server listens, with the tables of the last reload before that', async () => {
  const clock = new FakeClock()
  const { kit } = handKit(new Hub(clock), clock)
  const begun: string[] = []
  const delivery: Kit['peer']['delivery'] = {
    ...kit.peer.delivery,
    channelOf({ name }) {
      begun.push(name)
      throw new Error('there is no room for channels')
    },
  }
  const opened = await drain.open({ ...kit, peer: { ...kit.peer, delivery } }, [table('first')], {})
  opened.reload?.([table('second')], {})
  expect(begun).toEqual([])
  await opened.listen?.()
  expect(begun).toEqual(['drain:second'])
  opened.reload?.([table('third')], {})
  expect(begun).toEqual(['drain:second', 'drain:third'])
  await opened.close?.()
})
