import { networkInterfaces } from 'node:os'
import { describe, expect, it } from 'vitest'
import { parseDestination } from '../../../../server/edge/outbound/destination.ts'
import { isOwnListener, type OwnPort } from '../../../../server/edge/outbound/resolve.ts'

const own: OwnPort[] = [
  { transport: 'tcp', port: 7650 },
  { transport: 'udp', port: 8649 },
]
const here = Object.values(networkInterfaces()).flatMap((found) => (found ?? []).map(({ address }) => address))

describe("the producer's own ports", () => {
  it.each([...here, '127.0.0.1', '127.9.9.9', '::1', '::', '0.0.0.0', '::ffff:127.0.0.1'])(
    'are found at %s',
    (address) => {
      const isIt = (url: string): boolean => isOwnListener(parseDestination(url), address, own)
      expect(['tcp://x:7650', 'wss://x:7650', 'gmetric://x:8649'].map(isIt)).toEqual([true, true, true])
      expect(['tcp://x:7651', 'tcp://x:8649', 'gmetric://x:7650'].map(isIt)).toEqual([false, false, false])
    },
  )

  it('are not those of other machines', () => {
    for (const address of ['8.8.8.8', '2001:4860:4860::8888']) {
      expect(isOwnListener(parseDestination('tcp://x:7650'), address, own)).toBe(false)
    }
  })
})
