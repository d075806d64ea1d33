"""AOQ: sessions over Media over QUIC. Grants, the relays that they lead to, and the relay of this process."""
