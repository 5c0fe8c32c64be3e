/** The control that docs/contributing.md adds: the page shows it as it is, and it works. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { channelCount } from '../../../cases/controls/channel-count.ts'
import { str, type } from '../../../support/bytes.ts'
import { TestProducer } from '../../../support/producer.ts'

const EXAMPLE = new URL('../../../cases/controls/channel-count.ts', import.meta.url)
const PAGE = new URL('../../../../docs/contributing.md', import.meta.url)

test('the page shows channel-count.ts as it is, but for where it stands', () => {
  const block = /^```ts\n\/\/ file: server\/kernel\/controls\/channel-count\.ts\n([\s\S]*?)^```$/m
  const inPlace = readFileSync(EXAMPLE, 'utf8')
    .replaceAll('../../../server/kernel/controls/', './')
    .replaceAll('../../../server/kernel/', '../')
  expect(block.exec(readFileSync(PAGE, 'utf8'))?.[1]).toBe(inPlace)
})

test('it counts the channels of the user, and dry runs and keys work without a line of its own', async () => {
  const producer = await TestProducer.start()
  const { executor, registry } = producer.server.parts.producer
  executor.add([channelCount(registry)])
  await producer.addUser('ann', { role: 'consumer' })
  const ann = await producer.seat('ann')
  const durable = (value: number) => ['durable', type.boolean, new Uint8Array([0, 0, 0, value])] as const
  expect(await ann.execute('channel.count')).toMatchObject({ outcome: 'ok', detail: 'channels: 1', value: 1 })
  expect(await ann.execute('channel.count', durable(1))).toMatchObject({ outcome: 'ok', value: 1 })
  expect(await ann.execute('channel.count', durable(0))).toMatchObject({ outcome: 'ok', value: 0 })
  const dryRun = ['dry_run', type.boolean, new Uint8Array([0, 0, 0, 1])] as const
  expect(await ann.execute('channel.count', dryRun)).toMatchObject({ outcome: 'dry-run' })
  const key = ['idempotency_key', type.string, str('once')] as const
  expect(await ann.execute('channel.count', key)).toEqual(await ann.execute('channel.count', key))
  await producer.stop()
})
