'use strict';
/* Pictures and messages of one tab. A picture is answered when it has been drawn: who is slow is
   sent fewer, and the last one always. */
function stream(path, canvas, look, heard) {
  const address = new URL(path, location.href);
  address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  const socket = new WebSocket(address);
  socket.binaryType = 'arraybuffer';
  const context = canvas.getContext('2d');
  const reader = new TextDecoder();
  let closed = false;
  const say = message => { if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message)); };
  const tellLook = () => say({op: 'look', ...look()});
  const draw = async (header, bytes) => {
    try {
      const picture = await createImageBitmap(new Blob([bytes], {type: 'image/jpeg'}));
      if (canvas.width !== picture.width || canvas.height !== picture.height) {
        canvas.width = picture.width; canvas.height = picture.height;
      }
      context.drawImage(picture, 0, 0);
      picture.close();
      heard({op: 'drawn', seq: header.seq});
    } finally { say({op: 'shown', seq: header.seq}); }
  };
  socket.onopen = tellLook;
  socket.onmessage = event => {
    if (typeof event.data === 'string') {
      const message = JSON.parse(event.data);
      if (message.op === 'closed') closed = true;
      heard(message);
      return;
    }
    const length = new DataView(event.data).getUint32(0);
    draw(JSON.parse(reader.decode(new Uint8Array(event.data, 4, length))), new Uint8Array(event.data, 4 + length));
  };
  socket.onclose = () => { if (!closed) heard({op: 'broken'}); };
  return {
    say, tellLook,
    bytes: (header, content) => {
      const head = new TextEncoder().encode(JSON.stringify(header));
      const frame = new Uint8Array(4 + head.length + content.byteLength);
      new DataView(frame.buffer).setUint32(0, head.length);
      frame.set(head, 4); frame.set(new Uint8Array(content), 4 + head.length);
      if (socket.readyState === WebSocket.OPEN) socket.send(frame);
    },
    close: () => { closed = true; socket.close(); },
  };
}
