/**
 * The least that a Node process can do with datagrams: it reads and counts them. What it takes at most is the limit of any
 * server on one Node socket. Tells its port, and its count when asked, over the IPC channel.
 */
import { createSocket } from 'node:dgram'

const RECEIVE_BUFFER_BYTES = 8 * 1024 * 1024

let read = 0
const socket = createSocket('udp4')
socket.on('message', () => {
  read++
})
socket.bind(0, '127.0.0.1', () => {
  socket.setRecvBufferSize(RECEIVE_BUFFER_BYTES)
  process.send({ port: socket.address().port })
})
process.on('message', () => process.send({ read }))
process.on('disconnect', () => process.exit())
