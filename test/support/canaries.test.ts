import { describe, expect, it } from 'vitest'
import { args, command, join, str, type } from './bytes.ts'
import { firstLeak, secretsIn } from './canaries.ts'
import { TestProducer } from './producer.ts'

const add = command.execute(
  1,
  'user.add',
  args(['user', type.string, str('ann')], ['password', type.string, str('correct horse')]),
)

describe('the secrets of the suite', () => {
  it('are found in what peers send', () => {
    expect(secretsIn(add)).toEqual(['correct horse'])
    expect(secretsIn(command.auth(1, 'password', join(str('ann'), str('correct horse'))))).toEqual(['correct horse'])
    expect(secretsIn(command.auth(1, 'token', new TextEncoder().encode('cnb_0123456789')))).toEqual(['cnb_0123456789'])
    expect(secretsIn(command.nop(1))).toEqual([])
    expect(secretsIn(new Uint8Array(3))).toEqual([])
  })

  it.each(['correct horse', 'Y29ycmVjdCBob3JzZQ==', '636f727265637420686f727365'])('are found as %s', (form) => {
    expect(firstLeak(['fine', `{"msg":"it was ${form}"}`], ['correct horse'])).toContain(form)
    expect(firstLeak(['fine', 'also fine'], ['correct horse'])).toBeUndefined()
  })

  it('in the log of a server make its test fail', async () => {
    const producer = await TestProducer.start()
    const peer = producer.connect()
    await peer.until('caps')
    peer.send(add)
    await peer.until('response')
    producer.server.parts.producer.log.info('the password is correct horse')
    await expect(producer.stop()).rejects.toThrow('correct horse')
  })

  it('in the audit log make its test fail', async () => {
    const producer = await TestProducer.start()
    const peer = producer.connect()
    await peer.until('caps')
    peer.send(add)
    await peer.until('response')
    const { audit, journal } = producer.server.parts.producer
    audit.record({ action: 'test', address: '', object: '', outcome: 'ok', detail: 'it was correct horse' })
    await journal.whenStored()
    await expect(producer.stop()).rejects.toThrow('correct horse')
  })
})
