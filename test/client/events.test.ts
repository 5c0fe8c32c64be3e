import { expect, test } from 'vitest'
import { Events } from '../../client/events.ts'

test('each listener is told its own events, until it ends that', () => {
  const events = new Events()
  const told: string[] = []
  const off = events.on('connected', ({ channel }) => told.push(`a ${channel}`))
  events.on('connected', ({ channel }) => told.push(`b ${channel}`))
  events.on('closed', (error) => told.push(`closed ${error?.message}`))
  events.emit('connected', { channel: 9 })
  off()
  off()
  events.emit('connected', { channel: 10 })
  events.emit('closed', undefined)
  expect(told).toEqual(['a 9', 'b 9', 'b 10', 'closed undefined'])
})
