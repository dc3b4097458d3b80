// SPDX-License-Identifier: MIT
// TransferToServer PORT: reads what clients send into a 4 KiB buffer of a channel, and forgets it.

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;

final class TransferToServer {
	public static void main(String[] args) throws IOException {
		ByteBuffer room = ByteBuffer.allocate(4096);
		try (ServerSocketChannel server = ServerSocketChannel.open()) {
			server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), Integer.parseInt(args[0])));
			while (true) {
				try (SocketChannel client = server.accept()) {
					while (client.read(room) >= 0) {
						room.clear();
					}
				}
			}
		}
	}
}
