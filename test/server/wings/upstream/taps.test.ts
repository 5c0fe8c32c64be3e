/** What is asked of an upstream for those who follow something of it, and when. */
import { expect, it } from 'vitest'
import type { RemoteFollower } from '../../../../server/kernel/metrics/metric.ts'
import type { UpstreamSession } from '../../../../server/wings/upstream/session.ts'
import { Taps } from '../../../../server/wings/upstream/taps.ts'

const follower: RemoteFollower = {
  isDurable: true,
  queue: undefined,
  born() {},
  forget() {},
  again() {},
  lost() {},
}

const ID = 7

it.each([
  ['stays bound if this server ends meanwhile', true, ['COLLECT', 'SUBSCRIBE']],
  ['is stopped if nobody wants it any more', false, ['COLLECT', 'SUBSCRIBE', 'STOP']],
])('what is being bound %s', async (_, isEnding, expected) => {
  const asked: string[] = []
  let subscribed = (_: number): void => {}
  const request = (name: string, _: unknown, onOk?: (result: number) => void): Promise<number> => {
    asked.push(name)
    if (name === 'SUBSCRIBE')
      return new Promise((resolve) => {
        subscribed = resolve
      })
    onOk?.(ID)
    return Promise.resolve(ID)
  }
  const taps = new Taps({
    isDurable: true,
    hub: { emitEncoded() {} },
    maxSeries: 1,
    mayAsk: () => true,
    hasLabels: () => true,
    staysBound: () => isEnding,
    gone() {},
  })
  const followed = taps.follow({ producer: 'east', name: 'test.a', args: [] }, follower)
  const begun = taps.begin({ request } as unknown as UpstreamSession)
  await expect.poll(() => asked).toContain('SUBSCRIBE')
  followed.end()
  subscribed(0)
  await begun
  expect(asked).toEqual(expected)
})
